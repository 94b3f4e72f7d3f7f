/* Sums over a profile's samples: by function, by thread and by what threads waited for. */
#ifndef FGPROF_PROFILE_FUNCTION_TIMES_H
#define FGPROF_PROFILE_FUNCTION_TIMES_H

#include "profile/profile.h"

/* See fgprof_profile_functions, _activities and _waits. The caller frees the rows; their strings
 * belong to the profile. Return 0 or -ENOMEM. */
int profile_functions(const struct fgprof_profile *profile, const pid_t *tids, size_t tid_count,
                      struct fgprof_function **ret_rows, size_t *ret_count);
int profile_activities(const struct fgprof_profile *profile, struct fgprof_activity **ret_rows,
                       size_t *ret_count);
int profile_waits(const struct fgprof_profile *profile, struct fgprof_wait **ret_rows,
                  size_t *ret_count);

#endif
