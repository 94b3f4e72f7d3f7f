/* The difference between two profiles of objects. */
#ifndef FGPROF_PROFILE_SUBTRACT_H
#define FGPROF_PROFILE_SUBTRACT_H

#include "profile/profile.h"

/* As fgprof_profile_subtract. Its samples' counts are differences, negative as two's complement. */
int profile_subtract_objects(const struct fgprof_profile *after,
                             const struct fgprof_profile *before,
                             struct fgprof_profile **ret_difference);

#endif
