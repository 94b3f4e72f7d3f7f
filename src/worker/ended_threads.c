#include "worker/ended_threads.h"
#include "proc/tids.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

/* Ids of threads, with room for one for each sample and maker. */
struct thread_ids {
    pid_t *items;
    size_t count;
};

static void add_id(struct thread_ids *ids, uint32_t tid)
{
    if (tid && !(ids->count && ids->items[ids->count - 1] == (pid_t)tid))
        ids->items[ids->count++] = (pid_t)tid;
}

static bool is_thread(const struct counted_maker *row)
{
    return row->maker.kind == OBJECT_THREAD && row->maker.tid;
}

/* Keeps the makers of these threads. */
static void keep_makers_of(const struct objects *objects, struct thread_ids *ids,
                           struct renumber *makers)
{
    array_sort(ids->items, ids->count, tids_compare);
    for (size_t i = 0; i < objects->maker_count; i++) {
        const struct counted_maker *row = &objects->makers[i];
        if (is_thread(row) && tids_have(ids->items, ids->count, (pid_t)row->maker.tid))
            renumber_keep(makers, (uint32_t)i);
    }
}

/* Keeps the makers of threads that have samples, then those of threads that created one of these or
 * a living thread. */
static void find_makers(const struct results *results, const struct renumber *samples,
                        struct thread_ids *ids, struct renumber *makers)
{
    const struct objects *objects = &results->objects;
    for (size_t i = 0; i < results->stacks.sample_count; i++) {
        if (renumber_of(samples, (uint32_t)i) != ROW_GONE)
            add_id(ids, sample_labels_thread(&results->stacks.samples[i].labels));
    }
    keep_makers_of(objects, ids, makers);
    ids->count = 0;
    for (size_t i = 0; i < objects->maker_count; i++) {
        const struct counted_maker *row = &objects->makers[i];
        if (is_thread(row) &&
            (row->made > row->gone || renumber_of(makers, (uint32_t)i) != ROW_GONE))
            add_id(ids, row->maker.maker);
    }
    keep_makers_of(objects, ids, makers);
}

int ended_threads_join_makers(struct results *results, const struct renumber *samples)
{
    struct objects *objects = &results->objects;
    size_t ids_max = results->stacks.sample_count + objects->maker_count;
    struct thread_ids ids = {.items = malloc(ids_max * sizeof *ids.items + 1)};
    struct renumber makers = {0};
    uint32_t other = 0;
    int err = ids.items ? renumber_init(&makers, objects->maker_count) : -ENOMEM;
    if (!err && objects->maker_count)
        err = strings_intern(&results->strings, ENDED_NAME_OTHER, &other);
    if (!err) {
        find_makers(results, samples, &ids, &makers);
        err = objects_join_gone(objects, OBJECT_THREAD, &makers, ENDED_NAMES_MAX, other);
    }
    renumber_free(&makers);
    free(ids.items);
    return err;
}

/* Living threads, by id, and their present names. */
struct alive {
    struct thread_ids ids;
    struct renumber names;
};

static int find_alive(const struct results *results, const struct counted_threads *threads,
                      struct alive *alive)
{
    alive->ids.items = malloc(threads->count * sizeof *alive->ids.items + 1);
    if (!alive->ids.items || renumber_init(&alive->names, results->strings.count))
        return -ENOMEM;
    for (size_t i = 0; i < threads->count; i++) {
        const struct counted_thread *thread = &threads->items[i];
        if (!thread->tid || thread->is_gone)
            continue;
        add_id(&alive->ids, (uint32_t)thread->tid);
        renumber_keep(&alive->names, thread->name);
    }
    array_sort(alive->ids.items, alive->ids.count, tids_compare);
    return 0;
}

/* A thread may outlive any number of goroutines that it has run, and of names that it has had. A
 * goroutine that has been elsewhere since, or has ended, is no thread, whatever its id. */
static bool is_alive(const struct alive *alive, const struct sample_labels *labels)
{
    if (labels->goroutine || labels->tid != sample_labels_thread(labels))
        return false;
    return renumber_of(&alive->names, labels->thread_name) != ROW_GONE &&
           (!labels->tid || tids_have(alive->ids.items, alive->ids.count, (pid_t)labels->tid));
}

static void note_name(struct ended_names *names, uint32_t name)
{
    names->count += name != names->other && renumber_of(&names->known, name) == ROW_GONE;
    renumber_keep(&names->known, name);
}

int ended_names_find(struct results *results, struct ended_names *names)
{
    int err = strings_intern(&results->strings, ENDED_NAME_OTHER, &names->other);
    if (!err)
        err = renumber_init(&names->known, results->strings.count);
    for (size_t i = 0; i < results->stacks.sample_count && !err; i++) {
        if (results->stacks.samples[i].labels.has_ended)
            note_name(names, results->stacks.samples[i].labels.thread_name);
    }
    return err;
}

uint32_t ended_names_get(struct ended_names *names, uint32_t name)
{
    if (names->count >= ENDED_NAMES_MAX && renumber_of(&names->known, name) == ROW_GONE)
        return names->other;
    note_name(names, name);
    return name;
}

void ended_names_free(struct ended_names *names)
{
    renumber_free(&names->known);
}

static int join_sample(struct results *results, uint32_t sample, uint32_t name)
{
    struct stack_table *table = &results->stacks;
    struct sample_labels labels = table->samples[sample].labels;
    labels.thread_name = name;
    labels.tid = labels.goroutine = 0;
    results->counts.ended_are_joined = true;
    return stack_table_join_ended(table, sample, table->samples[sample].stack, &labels);
}

static int join_samples(struct results *results, const struct alive *alive,
                        struct ended_names *names, uint32_t epoch, const struct renumber *in_use)
{
    const struct stack_table *table = &results->stacks;
    size_t count = table->sample_count;
    int err = 0;
    for (uint32_t i = 0; i < count && !err; i++) {
        const struct counted_sample *sample = &table->samples[i];
        if (sample->epoch <= epoch && !sample->labels.has_ended &&
            !counted_sample_is_aside(sample) && !counted_sample_is_empty(sample) &&
            renumber_of(in_use, i) == ROW_GONE && !is_alive(alive, &sample->labels))
            err = join_sample(results, i, ended_names_get(names, sample->labels.thread_name));
    }
    return err;
}

int ended_threads_join_samples(struct results *results, const struct counted_threads *threads,
                               uint32_t epoch, const struct renumber *in_use)
{
    struct alive alive = {0};
    struct ended_names names = {0};
    int err = ended_names_find(results, &names);
    if (!err)
        err = find_alive(results, threads, &alive);
    if (!err)
        err = join_samples(results, &alive, &names, epoch, in_use);
    free(alive.ids.items);
    renumber_free(&alive.names);
    ended_names_free(&names);
    return err;
}
