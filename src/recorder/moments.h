/* The moments of a recording from which profiles may begin: those that are kept of its last part,
 * so that a profile can reach back, and those that callers hold. What was last counted before all
 * of them may be forgotten. */
#ifndef FGPROF_RECORDER_MOMENTS_H
#define FGPROF_RECORDER_MOMENTS_H

#include "sampler/channel.h"
#include "worker/results.h"
#include "worker/worker.h"

/* A moment of a recording: how much had been counted by then. Later results less that are what came
 * after it, so any number of overlapping profiles cost one sampling. */
struct moment;

/* Notes the figures of the results, as of `state`; `ticks_planned` were due by then. The caller
 * frees *ret_moment. Returns 0 or -ENOMEM. */
int moment_take(const struct results *results, const struct sampling_state *state,
                uint64_t ticks_planned, struct moment **ret_moment);
void moment_free(struct moment *moment);

/* CLOCK_MONOTONIC */
uint64_t moment_at_ns(const struct moment *moment);
uint64_t moment_ticks_planned(const struct moment *moment);

/* Leaves in the results, or a copy, what was counted after the moment. Threads and processes, and
 * how they could be sampled, stay those of the whole recording, and so do deadlocks, which last. */
void moment_subtract(const struct moment *moment, struct results *results,
                     struct sampling_counts *counts);

struct moments;
struct fgprof_moment; /* one that a caller holds */

/* Moments are kept for `keep_ns`; 0: none are. `may_forget`: what came before them need not be
 * known. Returns 0 or -ENOMEM. */
int moments_new(uint64_t keep_ns, bool may_forget, struct moments **ret_moments);

/* The recorder is done with them; moments that callers hold stay valid. Takes NULL. */
void moments_release(struct moments *moments);

/* Takes over a moment, and gives up the oldest if the next one reaches back far enough. Returns 0
 * or -ENOMEM, and then the moment is still the caller's. */
int moments_keep(struct moments *moments, struct moment *moment);

/* Gives up the earliest quarter of the moments that are kept, but none of the last second. Returns
 * whether any was given up. */
bool moments_give_up(struct moments *moments);

/* What is needed from now on; `is_crowded`: for moments that callers hold, nothing is. Returns
 * whether samples may be forgotten; what came before is then taken to be. */
bool moments_need(struct moments *moments, bool is_crowded, struct worker_moments *ret_moments);

/* Takes over a moment for a caller. Returns 0 or -ENOMEM, and then it is still the caller's. */
int moments_hold(struct moments *moments, struct moment *moment, struct fgprof_moment **ret_moment);
void moments_drop(struct fgprof_moment *moment);

/* Finds the moment from which a profile begins, and locks it until moments_unlock: `since`, if that
 * is not NULL and all that came after it is known; else the latest at or before `begin_ns`. NULL:
 * the start of the recording; but if that is forgotten, the earliest that is kept. */
const struct moment *moments_lock(struct moments *moments, const struct fgprof_moment *since,
                                  uint64_t begin_ns);
void moments_unlock(struct moments *moments);

#endif
