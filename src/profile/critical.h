/* The critical path: what the elapsed time of a thread, or of its requests, depended on.
 *
 * At each tick of a wait, the waiting thread is replaced by the thread that later ended the wait:
 * by what that one did at the same tick. It ran, or waited itself, and is then replaced in the same
 * way, and so on. A thread that waits for a CPU is replaced by the thread that had that CPU. So the
 * paths add up to the thread's time. */
#ifndef FGPROF_PROFILE_CRITICAL_H
#define FGPROF_PROFILE_CRITICAL_H

#include "profile/profile.h"

/* Replaces the samples by the paths of the threads that `of` names ("NAME", "TID" or "NAME/TID"),
 * or of all threads while they have the label "KEY=VALUE", sets profile.critical, and drops
 * timelines. Returns 0; -ENODATA if the profile does not know, tick by tick, what ended waits;
 * -ENOENT if there is no such thread or label; -EINVAL if it is not of FGPROF_KIND_WALL, or
 * -ENOMEM. On error the samples are unchanged. */
int profile_make_critical(struct fgprof_profile *profile, const char *of);

#endif
