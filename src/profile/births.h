/* Which thread created each thread of a profile, and in which function. */
#ifndef FGPROF_PROFILE_BIRTHS_H
#define FGPROF_PROFILE_BIRTHS_H

#include "profile/build.h"

/* Fills profile->births. `profile` was made from `counted` and distinguishes threads, and `objects`
 * has the creators of threads under `kind`. Returns 0 or -ENOMEM. */
int name_births(struct fgprof_profile *profile, const struct counted *counted,
                const struct objects *objects, uint32_t kind, const struct name_sources *sources);

/* The thread's row; NULL: nothing is known. */
const struct profile_birth *birth_of(const struct fgprof_profile *profile, uint32_t tid);

#endif
