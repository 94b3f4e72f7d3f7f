/* The snapshots of a recording: so many that observations wait for the worker no longer than
 * memory is bounded. The sampling thread takes them, the worker gives them back. */
#ifndef FGPROF_OBSERVE_SNAPSHOTS_H
#define FGPROF_OBSERVE_SNAPSHOTS_H

#include "observe/snapshot.h"

#define SNAPSHOTS_MAX 512
#define SNAPSHOTS_BYTES_MAX (64u << 20) /* of all their stacks */

struct snapshots;

/* Returns 0 or -ENOMEM. */
int snapshots_new(struct snapshots **ret_snapshots);
/* All must have been given back, or their threads have ended. Takes NULL. */
void snapshots_free(struct snapshots *snapshots);

/* A snapshot with room for that much; NULL if all are in use, or memory is short. For the sampling
 * thread. */
struct snapshot *snapshots_take(struct snapshots *snapshots, size_t stack_limit,
                                const struct stack_place *other);

/* Gives one back. From the sampling thread or the worker: `is_worker`. */
void snapshots_give(struct snapshots *snapshots, struct snapshot *snapshot, bool is_worker);

/* Whether the next take may succeed: not while all are in use. */
bool snapshots_are_left(struct snapshots *snapshots);

#endif
