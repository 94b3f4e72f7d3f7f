/* Converts a profile of wall-clock time to other kinds. */
#ifndef FGPROF_PROFILE_KIND_H
#define FGPROF_PROFILE_KIND_H

#include "profile/profile.h"
#include "wait/resource.h"

/* Replaces the samples (see enum fgprof_kind) and drops timelines. Returns 0 or -ENOMEM; then the
 * samples are unchanged. */
int profile_make_kind(struct fgprof_profile *profile, enum fgprof_kind kind);

/* Whether it is a wait for a resource of one of these kinds. */
bool profile_wait_is_one_of(const struct fgprof_profile *profile, const struct profile_wait *wait,
                            const enum resource_kind *kinds, size_t count);

/* Whether the wait is for another thread of the program, as in Go's block profile: for a lock, or
 * for a thread's exit. Otherwise its owner is a process. */
bool profile_wait_is_for_threads(const struct fgprof_profile *profile,
                                 const struct profile_wait *wait);

/* Explains the figures of a profile of contentions to users; NULL for other kinds. */
const char *profile_contentions_note(const struct fgprof_profile *profile);

#endif
