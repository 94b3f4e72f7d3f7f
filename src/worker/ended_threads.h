/* Joins what is kept of threads that have ended, so that it does not grow with their number. */
#ifndef FGPROF_WORKER_ENDED_THREADS_H
#define FGPROF_WORKER_ENDED_THREADS_H

#include "worker/results.h"
#include "worker/threads.h"

/* How many names of ended threads are kept. Further ones are ENDED_NAME_OTHER. */
#define ENDED_NAMES_MAX 1000
#define ENDED_NAME_OTHER "[other]"

/* Names that samples of what has ended have. Zeroed at first. */
struct ended_names {
    struct renumber known;
    size_t count;
    uint32_t other;
};

/* Returns 0 or -ENOMEM. */
int ended_names_find(struct results *results, struct ended_names *names);

/* The name if it is known or there is room for one more, else that of the others. */
uint32_t ended_names_get(struct ended_names *names, uint32_t name);

void ended_names_free(struct ended_names *names);

/* Joins the makers of threads that have ended, unless one of the samples that stay is of the thread
 * or of one that it made. Returns 0 or -ENOMEM. */
int ended_threads_join_makers(struct results *results, const struct renumber *samples);

/* Joins samples that were not counted after `epoch`, are of threads that have ended, and are not in
 * `in_use`. Those that it leaves empty stay. Returns 0 or -ENOMEM; then some are joined. */
int ended_threads_join_samples(struct results *results, const struct counted_threads *threads,
                               uint32_t epoch, const struct renumber *in_use);

#endif
