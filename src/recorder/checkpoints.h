/* The checkpoints of a recording from which profiles may begin: those that are kept of its last
 * part, so that a profile can reach back, and those that callers hold. What was last counted before
 * all of them may be forgotten. */
#ifndef FGPROF_RECORDER_CHECKPOINTS_H
#define FGPROF_RECORDER_CHECKPOINTS_H

#include "sampler/channel.h"
#include "worker/results.h"
#include "worker/worker.h"

/* A checkpoint of a recording: how much had been counted by then. Later results less that are what
 * came after it, so any number of overlapping profiles cost one sampling. */
struct checkpoint;

/* Notes the figures of the results, as of `state`; `ticks_planned` were due by then. The caller
 * frees *ret_checkpoint. Returns 0 or -ENOMEM. */
int checkpoint_take(const struct results *results, const struct sampling_state *state,
                    uint64_t ticks_planned, struct checkpoint **ret_checkpoint);
void checkpoint_free(struct checkpoint *checkpoint);

/* CLOCK_MONOTONIC */
uint64_t checkpoint_at_ns(const struct checkpoint *checkpoint);
uint64_t checkpoint_ticks_planned(const struct checkpoint *checkpoint);

/* Leaves in the results, or a copy, what was counted after the checkpoint. Threads and processes,
 * and how they could be sampled, stay those of the whole recording, and so do deadlocks, which
 * last. */
void checkpoint_subtract(const struct checkpoint *checkpoint, struct results *results,
                         struct sampling_counts *counts);

struct checkpoints;
struct fgprof_moment; /* one that a caller holds */

/* Checkpoints are kept for `keep_ns`; 0: none are. `may_forget`: what came before them need not be
 * known. Returns 0 or -ENOMEM. */
int checkpoints_new(uint64_t keep_ns, bool may_forget, struct checkpoints **ret_checkpoints);

/* The recorder is done with them; checkpoints that callers hold stay valid. Takes NULL. */
void checkpoints_release(struct checkpoints *checkpoints);

/* Takes over a checkpoint, and gives up the oldest if the next one reaches back far enough. Returns
 * 0 or -ENOMEM, and then the checkpoint is still the caller's. */
int checkpoints_keep(struct checkpoints *checkpoints, struct checkpoint *checkpoint);

/* Gives up the earliest quarter of the checkpoints that are kept, but none of the last second.
 * Returns whether any was given up. */
bool checkpoints_give_up(struct checkpoints *checkpoints);

/* What is needed from now on; `is_crowded`: for checkpoints that callers hold, nothing is. Returns
 * whether samples may be forgotten; what came before is then taken to be. */
bool checkpoints_need(struct checkpoints *checkpoints, bool is_crowded,
                      struct worker_checkpoints *ret_checkpoints);

/* Takes over a checkpoint for a caller. Returns 0 or -ENOMEM, and then it is still the caller's. */
int checkpoints_hold(struct checkpoints *checkpoints, struct checkpoint *checkpoint,
                     struct fgprof_moment **ret_checkpoint);
void checkpoints_drop(struct fgprof_moment *checkpoint);

/* Finds the checkpoint from which a profile begins, and locks it until checkpoints_unlock: `since`,
 * if that is not NULL and all that came after it is known; else the latest at or before `begin_ns`.
 * NULL: the start of the recording; but if that is forgotten, the earliest that is kept. */
const struct checkpoint *checkpoints_lock(struct checkpoints *checkpoints,
                                          const struct fgprof_moment *since, uint64_t begin_ns);
void checkpoints_unlock(struct checkpoints *checkpoints);

#endif
