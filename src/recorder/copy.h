/* What a recording has found while it goes on: a copy that the worker makes between messages, for
 * another thread to name. So nothing that samples go into needs a lock, and slow symbolization
 * delays neither a tick nor the worker. */
#ifndef FGPROF_RECORDER_COPY_H
#define FGPROF_RECORDER_COPY_H

#include "sampler/channel.h"
#include "worker/results.h"

/* Zeroed at first. */
struct copy {
    struct results results; /* its tables, without what is needed to add to them, and counts */
    struct sampling_counts counts;
    uint64_t until_ns; /* CLOCK_MONOTONIC: when it was wanted */
};

/* Brings the copy up to date, for a MESSAGE_COPY. What was copied before is there still, so that
 * only what is new costs time: stacks and strings are never taken away. Returns 0 or -ENOMEM. */
int copy_update(struct copy *copy, const struct results *results, const struct message *message);
void copy_free(struct copy *copy);

#endif
