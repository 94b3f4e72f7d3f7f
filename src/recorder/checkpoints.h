/* Checkpoints of a recording, from which profiles may begin: some are kept of its last part, and
 * callers hold others. Samples last counted before all of them may be dropped. */
#ifndef FGPROF_RECORDER_CHECKPOINTS_H
#define FGPROF_RECORDER_CHECKPOINTS_H

#include "sampler/channel.h"
#include "worker/results.h"
#include "worker/worker.h"

/* A checkpoint: how much had been counted by then. Subtracting it from later results leaves what
 * came after, so any number of overlapping profiles can share one recording. */
struct checkpoint;

/* Copies the counts in the results, as of `state`, when `ticks_planned` were due. The caller frees
 * *ret_checkpoint. Returns 0 or -ENOMEM. */
int checkpoint_take(const struct results *results, const struct sampling_state *state,
                    uint64_t ticks_planned, struct checkpoint **ret_checkpoint);
void checkpoint_free(struct checkpoint *checkpoint);

/* CLOCK_MONOTONIC */
uint64_t checkpoint_at_ns(const struct checkpoint *checkpoint);
uint64_t checkpoint_ticks_planned(const struct checkpoint *checkpoint);

/* Subtracts the checkpoint from the results, or a copy. Threads, processes and deadlocks stay those
 * of the whole recording. */
void checkpoint_subtract(const struct checkpoint *checkpoint, struct results *results,
                         struct sampling_counts *counts);

struct checkpoints;
struct fgprof_moment; /* one that a caller holds, until fgprof_moment_free */

/* Keeps checkpoints for `keep_ns`; 0: none. `may_forget`: samples from before them may be dropped.
 * Returns 0 or -ENOMEM. */
int checkpoints_new(uint64_t keep_ns, bool may_forget, struct checkpoints **ret_checkpoints);

/* The recorder no longer needs them. Checkpoints that callers hold stay valid. Accepts NULL. */
void checkpoints_release(struct checkpoints *checkpoints);

/* Takes over a checkpoint, and drops the oldest if the next one reaches back far enough. Returns 0,
 * or -ENOMEM, and then the caller still owns the checkpoint. */
int checkpoints_keep(struct checkpoints *checkpoints, struct checkpoint *checkpoint);

/* Drops the earliest quarter of the checkpoints, but none of the last second. Returns whether any
 * was dropped. */
bool checkpoints_give_up(struct checkpoints *checkpoints);

/* Sets what the checkpoints need; `is_crowded`: those that callers hold need nothing. Returns
 * whether samples from before that may be dropped, and then assumes that they are dropped. */
bool checkpoints_need(struct checkpoints *checkpoints, bool is_crowded,
                      struct worker_checkpoints *ret_checkpoints);

/* Takes over a checkpoint that a caller holds. Returns 0, or -ENOMEM, and then the caller still
 * owns it. */
int checkpoints_hold(struct checkpoints *checkpoints, struct checkpoint *checkpoint,
                     struct fgprof_moment **ret_checkpoint);

/* The epoch of the earliest checkpoint that a caller holds, or `epoch` if that is earlier. */
uint32_t checkpoints_held_since(struct checkpoints *checkpoints, uint32_t epoch);

/* Finds the checkpoint at which a profile begins, and locks it until checkpoints_unlock: `since`,
 * if it is not NULL and nothing after it was dropped; else the latest at or before `begin_ns`; else
 * the earliest if the start of the recording was dropped. NULL: the start of the recording. */
const struct checkpoint *checkpoints_lock(struct checkpoints *checkpoints,
                                          const struct fgprof_moment *since, uint64_t begin_ns);
void checkpoints_unlock(struct checkpoints *checkpoints);

#endif
