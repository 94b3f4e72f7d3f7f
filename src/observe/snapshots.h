/* The snapshots of a recording. Their number and memory are bounded, and so is the number of
 * observations that wait for the worker. The sampling thread takes them, the worker gives them
 * back. */
#ifndef FGPROF_OBSERVE_SNAPSHOTS_H
#define FGPROF_OBSERVE_SNAPSHOTS_H

#include "observe/snapshot.h"

#define SNAPSHOTS_MAX 512
#define SNAPSHOTS_BYTES_MAX (64u << 20) /* all their stacks together */

struct snapshots;

/* Returns 0 or -ENOMEM. */
int snapshots_new(struct snapshots **ret_snapshots);
/* All must have been given back, or the threads that hold them have ended. Accepts NULL. */
void snapshots_free(struct snapshots *snapshots);

/* A snapshot with room for that much; NULL if all are in use, or memory is short. Called by the
 * sampling thread. */
struct snapshot *snapshots_take(struct snapshots *snapshots, size_t stack_limit,
                                const struct stack_place *other);

/* Gives one back. `is_worker`: the worker calls this, not the sampling thread. */
void snapshots_give(struct snapshots *snapshots, struct snapshot *snapshot, bool is_worker);

#endif
