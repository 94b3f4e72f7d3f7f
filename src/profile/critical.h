/* What the elapsed time of a thread, or of its requests, depended on: its critical path.
 *
 * At each tick at which the thread waits, and another one ended that wait later, its place is taken
 * by what that one did at the same tick: it ran, or waited itself, and then for the thread that
 * ended that wait, and so on. If it waits for a CPU, its place is taken by the thread that had
 * that. So the paths add up to the thread's time. */
#ifndef FGPROF_PROFILE_CRITICAL_H
#define FGPROF_PROFILE_CRITICAL_H

#include "profile/profile.h"

/* Replaces the samples by the paths of the threads that `of` names ("NAME", "TID" or "NAME/TID"),
 * or of all threads while they have the label "KEY=VALUE", sets profile.critical, and drops
 * timelines. Returns 0; -ENODATA if the profile does not have what ended waits, by ticks; -ENOENT
 * if there is no such thread or label; -EINVAL if it is not of FGPROF_KIND_WALL, or -ENOMEM, and
 * then the samples are unchanged. */
int profile_make_critical(struct fgprof_profile *profile, const char *of);

#endif
