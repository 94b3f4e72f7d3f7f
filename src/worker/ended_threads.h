/* Merges the results of threads that have ended, by name, so that memory does not grow with their
 * number. */
#ifndef FGPROF_WORKER_ENDED_THREADS_H
#define FGPROF_WORKER_ENDED_THREADS_H

#include "worker/results.h"
#include "worker/threads.h"

/* Limit of distinct names of ended threads; beyond it they are ENDED_NAME_OTHER. */
#define ENDED_NAMES_MAX 1000
#define ENDED_NAME_OTHER STRING_OTHER

/* Thread names that joined samples have. Zeroed at first. */
struct ended_names {
    struct renumber known;
    size_t count;
    uint32_t other;
};

/* Returns 0 or -ENOMEM. */
int ended_names_find(struct results *results, struct ended_names *names);

/* The name itself if it is known or the limit is not reached; else ENDED_NAME_OTHER's. */
uint32_t ended_names_get(struct ended_names *names, uint32_t name);

void ended_names_free(struct ended_names *names);

/* Merges the makers of ended threads, unless a kept sample belongs to the thread or to one that it
 * created. Returns 0 or -ENOMEM. */
int ended_threads_join_makers(struct results *results, const struct renumber *samples);

/* Joins samples of ended threads. Skips samples that were counted after `epoch`, or are in
 * `in_use`. The emptied samples keep their rows. Returns 0 or -ENOMEM, and then some are joined. */
int ended_threads_join_samples(struct results *results, const struct counted_threads *threads,
                               uint32_t epoch, const struct renumber *in_use);

#endif
