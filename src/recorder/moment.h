/* A moment of a recording: how much had been counted by then. Later results less that are what came
 * after it, so any number of overlapping profiles cost one sampling. */
#ifndef FGPROF_RECORDER_MOMENT_H
#define FGPROF_RECORDER_MOMENT_H

#include "sampler/channel.h"
#include "worker/results.h"

struct moment;

/* Notes the figures of the results, as of `state`; `ticks_planned` were due by then. The caller
 * frees *ret_moment. Returns 0 or -ENOMEM. */
int moment_take(const struct results *results, const struct sampling_state *state,
                uint64_t ticks_planned, struct moment **ret_moment);
void moment_free(struct moment *moment);

/* CLOCK_MONOTONIC */
uint64_t moment_at_ns(const struct moment *moment);
uint64_t moment_ticks_planned(const struct moment *moment);

/* Samples that were counted since have a later one (count/stack_table.h). */
uint32_t moment_epoch(const struct moment *moment);

/* How much memory it takes. */
size_t moment_bytes(const struct moment *moment);

/* Leaves in the results, or a copy, what was counted after the moment. Threads and processes, and
 * how they could be sampled, stay those of the whole recording, and so do deadlocks, which last. */
void moment_subtract(const struct moment *moment, struct results *results,
                     struct sampling_counts *counts);

#endif
