/* The snapshots of a recording. Their number and memory are bounded, which also bounds the number
 * of observations that wait for the worker. The sampling thread takes snapshots, the worker gives
 * them back. */
#ifndef FGPROF_OBSERVE_SNAPSHOT_POOL_H
#define FGPROF_OBSERVE_SNAPSHOT_POOL_H

#include "observe/snapshot.h"

#define SNAPSHOTS_MAX 512
#define SNAPSHOTS_BYTES_MAX (64u << 20) /* all their stacks together */

struct snapshot_pool;

/* Returns 0 or -ENOMEM. */
int snapshot_pool_new(struct snapshot_pool **ret_pool);
/* All snapshots must have been given back, or the threads that hold them must have ended. Accepts
 * NULL. */
void snapshot_pool_free(struct snapshot_pool *pool);

/* A snapshot with room for this much; NULL if all are in use, or memory is short. Called by the
 * sampling thread. */
struct snapshot *snapshot_pool_take(struct snapshot_pool *pool, size_t stack_limit,
                                    const struct stack_place *other);

/* Gives a snapshot back. `is_worker`: the worker calls this, not the sampling thread. */
void snapshot_pool_give(struct snapshot_pool *pool, struct snapshot *snapshot, bool is_worker);

#endif
