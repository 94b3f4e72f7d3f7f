/* Names what threads waited for. */
#ifndef FGPROF_PROFILE_NAME_WAITS_H
#define FGPROF_PROFILE_NAME_WAITS_H

#include "count/waits.h"
#include "count/deadlocks.h"
#include "mapping/spaces.h"
#include "profile/profile.h"
#include "wait/lock.h"

/* The profile's numbers of counted rows. */
struct named_rows {
    const struct strings *strings; /* of the counted rows */
    const struct spaces *spaces;   /* theirs */
    const uint32_t *stacks;        /* by the number of a counted stack */
    struct reader *reader;
    const uint32_t *processes_plus_1; /* by that of a counted process; 0: it has no samples */
};

struct reader;

/* Adds the rows that `is_used` marks and the rows that they refer to. *ret_waits has, for each
 * wait, its number in the profile + 1; the caller frees it. Returns 0 or -ENOMEM. */
int name_waits(struct fgprof_profile *profile, const struct waits *waits,
               const struct named_rows *named, const bool *is_used, uint32_t **ret_waits);

/* Call this once all locations have names: recognizes locks of libraries other than glibc by their
 * functions. Returns 0 or -ENOMEM. */
int name_other_locks(struct fgprof_profile *profile);

/* Then also: writes where wakers were. Returns 0 or -ENOMEM. */
int name_waker_paths(struct fgprof_profile *profile);

/* Gets the innermost frames of a stack, including inlined ones, without the kernel's. Returns how
 * many there are. */
size_t innermost_frames(const struct fgprof_profile *profile, uint32_t stack,
                        struct lock_frame ret_frames[LOCK_FRAMES_MAX]);

/* Call this once all waits have their names: adds a line for each deadlock. `waits` has, for each
 * counted wait, its number in the profile + 1, or 0; the recording began at `begin_ns`
 * (CLOCK_MONOTONIC). Returns 0 or -ENOMEM. */
int name_deadlocks(struct fgprof_profile *profile, const struct deadlocks *deadlocks,
                   uint64_t begin_ns, const struct named_rows *named, const uint32_t *waits);

#endif
