/* Profiles of other kinds than wall-clock time, made from one of that kind. */
#ifndef FGPROF_PROFILE_KIND_H
#define FGPROF_PROFILE_KIND_H

#include "profile/profile.h"

/* Replaces the samples: see enum fgprof_kind. Timelines, which are of other samples, are dropped.
 * Returns 0 or -ENOMEM, and then the profile is as it was, but for rows that no sample refers to.
 */
int profile_make_kind(struct fgprof_profile *profile, enum fgprof_kind kind);

/* Whether it is about other threads of the program, as Go's block profile is: for a lock, or a
 * thread's end. Else its owner is a process, and its name says so. */
bool profile_wait_is_for_threads(const struct fgprof_profile *profile,
                                 const struct profile_wait *wait);

/* How a profile of contentions came by its figures, as a sentence for users; NULL: it is of another
 * kind. */
const char *profile_contentions_note(const struct fgprof_profile *profile);

#endif
