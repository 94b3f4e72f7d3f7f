/* Joins what is kept of threads that have ended, so that it does not grow with their number. */
#ifndef FGPROF_WORKER_ENDED_THREADS_H
#define FGPROF_WORKER_ENDED_THREADS_H

#include "worker/results.h"

/* How many names of ended threads are kept. Further ones are ENDED_NAME_OTHER. */
#define ENDED_NAMES_MAX 1000
#define ENDED_NAME_OTHER "[other]"

/* Joins the makers of threads that have ended, unless one of the samples that stay is of the thread
 * or of one that it made. Returns 0 or -ENOMEM. */
int ended_threads_join_makers(struct results *results, const struct renumber *samples);

#endif
