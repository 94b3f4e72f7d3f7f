/* Deadlocks in words. */
#ifndef FGPROF_PROFILE_NAME_DEADLOCKS_H
#define FGPROF_PROFILE_NAME_DEADLOCKS_H

#include "count/deadlocks.h"
#include "profile/name_waits.h"

/* Once all waits have their names: adds a line for each deadlock. `waits` has the profile's number
 * + 1 of each counted wait, or 0; the recording began at `begin_ns` (CLOCK_MONOTONIC). Returns 0 or
 * -ENOMEM. */
int name_deadlocks(struct fgprof_profile *profile, const struct deadlocks *deadlocks,
                   uint64_t begin_ns, const struct named_rows *named, const uint32_t *waits);

#endif
