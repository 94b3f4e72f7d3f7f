/* A moment of a recording: how much had been counted by then. A later copy less that is what came
 * after it, so any number of overlapping profiles cost one sampling. */
#ifndef FGPROF_RECORDER_MOMENT_H
#define FGPROF_RECORDER_MOMENT_H

#include "recorder/copy.h"

struct fgprof_moment;

/* Keeps the figures of an up-to-date copy; `ticks_planned` were due by then. The caller frees
 * *ret_moment. Returns 0 or -ENOMEM. */
int moment_take(const struct copy *copy, uint64_t ticks_planned, struct fgprof_moment **ret_moment);
void moment_free(struct fgprof_moment *moment);

/* CLOCK_MONOTONIC */
uint64_t moment_at_ns(const struct fgprof_moment *moment);
uint64_t moment_ticks_planned(const struct fgprof_moment *moment);

/* Leaves in the copy what was counted after the moment. Threads and processes, and how they could
 * be sampled, stay those of the whole recording, and so do deadlocks, which last. */
void moment_subtract(const struct fgprof_moment *moment, struct copy *copy);

#endif
