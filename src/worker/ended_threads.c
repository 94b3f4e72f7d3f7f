#include "worker/ended_threads.h"
#include "proc/tids.h"

#include <errno.h>
#include <stdlib.h>

/* Ids of threads. There is room for one of each sample and maker. */
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

/* The rows of these threads stay. */
static void keep_makers_of(const struct objects *objects, struct thread_ids *ids,
                           struct renumber *makers)
{
    if (ids->count)
        qsort(ids->items, ids->count, sizeof *ids->items, tids_compare);
    for (size_t i = 0; i < objects->maker_count; i++) {
        const struct counted_maker *row = &objects->makers[i];
        if (is_thread(row) && tids_have(ids->items, ids->count, (pid_t)row->maker.tid))
            renumber_keep(makers, (uint32_t)i);
    }
}

/* The threads that samples are of, then those that made these or a living thread. */
static void find_makers(const struct results *results, const struct renumber *samples,
                        struct thread_ids *ids, struct renumber *makers)
{
    const struct objects *objects = &results->objects;
    for (size_t i = 0; i < results->stacks.sample_count; i++) {
        if (renumber_of(samples, (uint32_t)i) != ROW_GONE)
            add_id(ids, results->stacks.samples[i].labels.tid);
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
