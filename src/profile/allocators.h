/* Functions that only allocate memory for their callers: their frames do not show what the memory
 * is for. */
#ifndef FGPROF_PROFILE_ALLOCATORS_H
#define FGPROF_PROFILE_ALLOCATORS_H

#include "profile/profile.h"

/* Counts a stack's first locations that are only in such functions. At least one location
 * remains. */
uint32_t allocators_count_leading(const struct fgprof_profile *profile, uint32_t stack);

/* Removes such functions from the lines of the stack's first location. */
void allocators_trim_first(struct fgprof_profile *profile, uint32_t stack);

#endif
