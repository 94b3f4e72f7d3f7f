/* A copy of a running recording's results. The worker makes it between two messages, and another
 * thread symbolizes it. So the tables need no lock, and slow symbolization delays neither a tick
 * nor the worker. */
#ifndef FGPROF_RECORDER_COPY_H
#define FGPROF_RECORDER_COPY_H

#include "sampler/channel.h"
#include "worker/results.h"

/* Zeroed at first, and its results freed at last. */
struct copy {
    struct results results; /* tables that nothing can be added to, and counts */
    struct sampling_counts counts;
    uint64_t until_ns; /* CLOCK_MONOTONIC: when it was asked for */
};

/* Updates the copy, as of `state`. Copies only new stacks and strings, unless some were dropped.
 * Copies timelines only if they are a ring, whose size is limited. Returns 0 or -ENOMEM. */
int copy_update(struct copy *copy, const struct results *results,
                const struct sampling_state *state);

#endif
