/* Each thread is a row among the makers of objects, with its id and that of its creator. The stacks
 * of those rows are named in a separate profile, as for FGPROF_KIND_THREADCREATE, so that this
 * profile gets no stacks without samples. */
#include "profile/births.h"
#include "profile/makers.h"
#include "base/array.h"
#include "base/upper_bound.h"
#include "objects/source.h"
#include "proc/procfs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A thread of the recording. */
struct known_thread {
    uint32_t tid;
    uint32_t row; /* in objects.makers */
};

struct known_threads {
    const struct counted_maker *rows;
    struct known_thread *items; /* by id */
    size_t count;
};

static int compare_threads(const void *a, const void *b)
{
    const struct known_thread *left = a, *right = b;
    int order = ORDER(left->tid, right->tid);
    return order ? order : ORDER(left->row, right->row);
}

static int find_threads(struct known_threads *threads, const struct objects *objects, uint32_t kind)
{
    threads->rows = objects->makers;
    threads->items = calloc(objects->maker_count + 1, sizeof *threads->items);
    if (!threads->items)
        return -ENOMEM;
    for (size_t i = 0; i < objects->maker_count; i++) {
        const struct counted_maker *row = &objects->makers[i];
        if (row->maker.kind == kind && row->maker.tid && row->made)
            threads->items[threads->count++] = (struct known_thread){row->maker.tid, (uint32_t)i};
    }
    array_sort(threads->items, threads->count, compare_threads);
    return 0;
}

/* The last thread that had the id; NULL: none is known. */
static const struct known_thread *find(const struct known_threads *threads, uint32_t tid)
{
    return FIND_SORTED(threads->items, threads->count, tid, tid);
}

/* Marks the rows of the threads that have samples. */
static bool *find_wanted(const struct fgprof_profile *profile, const struct objects *objects,
                         const struct known_threads *threads)
{
    bool *wanted = calloc(objects->maker_count + 1, sizeof *wanted);
    for (size_t i = 0; wanted && i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        const struct known_thread *thread =
            sample_is_of_thread(sample) ? find(threads, sample->tid) : NULL;
        if (thread)
            wanted[thread->row] = true;
    }
    return wanted;
}

/* The creator of a thread, which is in the same process unless the thread is its process's first.
 * NULL: not known, because an id may be from another PID namespace. */
static const struct object_maker *maker_of(const struct counted *counted,
                                           const struct known_threads *threads,
                                           const struct object_maker *made)
{
    const struct known_thread *known = find(threads, made->maker);
    const struct object_maker *maker = known ? &threads->rows[known->row].maker : NULL;
    bool is_first = counted->table->processes[made->process].pid == made->tid;
    return maker && (maker->process == made->process || is_first) ? maker : NULL;
}

static int name_maker(struct fgprof_profile *profile, const struct counted *counted,
                      const struct known_threads *threads, const struct object_maker *made,
                      uint32_t *ret_name)
{
    const struct object_maker *maker = maker_of(counted, threads, made);
    bool is_made = made->origin == ORIGIN_SEEN || made->origin == ORIGIN_LATER;
    char text[THREAD_NAME_BYTES + 16] = "";
    if (is_made && maker)
        snprintf(text, sizeof text, "%s/%" PRIu32, strings_get(counted->strings, maker->name),
                 maker->tid);
    else if (is_made)
        snprintf(text, sizeof text, "another thread");
    return strings_intern(&profile->strings, text, ret_name);
}

static int compare_births(const void *a, const void *b)
{
    const struct profile_birth *left = a, *right = b;
    return ORDER(left->tid, right->tid);
}

/* `named`: a profile of the wanted threads, with a sample for each. */
static int add_births(struct fgprof_profile *profile, const struct counted *counted,
                      const struct known_threads *threads, const struct fgprof_profile *named)
{
    for (size_t i = 0; i < named->sample_count; i++) {
        const struct profile_sample *sample = &named->samples[i];
        const struct object_maker *maker = &threads->rows[find(threads, sample->tid)->row].maker;
        struct profile_birth birth = {.tid = sample->tid};
        const char *function =
            maker->origin == ORIGIN_LATER ? "" : makers_main_function(named, sample->stack);
        if (name_maker(profile, counted, threads, maker, &birth.maker) ||
            strings_intern(&profile->strings, function, &birth.function))
            return -ENOMEM;
        if (!birth.maker && !birth.function)
            continue;
        if (array_append(&profile->births, &profile->birth_count, &profile->birth_capacity, birth))
            return -ENOMEM;
    }
    array_sort(profile->births, profile->birth_count, compare_births);
    return 0;
}

int name_births(struct fgprof_profile *profile, const struct counted *counted,
                const struct objects *objects, uint32_t kind, const struct name_sources *sources)
{
    struct known_threads threads = {0};
    struct fgprof_profile *named = NULL;
    int err = find_threads(&threads, objects, kind);
    bool *wanted = err ? NULL : find_wanted(profile, objects, &threads);
    const struct chosen_objects chosen = {
        .objects = objects, .maker_kind = kind, .are_threads = true, .wanted = wanted};
    err = wanted ? name_objects(counted, &chosen, sources, &named) : -ENOMEM;
    if (!err)
        err = add_births(profile, counted, &threads, named);
    profile_free(named);
    free(wanted);
    free(threads.items);
    return err;
}

const struct profile_birth *birth_of(const struct fgprof_profile *profile, uint32_t tid)
{
    return FIND_SORTED(profile->births, profile->birth_count, tid, tid);
}
