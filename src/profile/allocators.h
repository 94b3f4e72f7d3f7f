/* Functions that only allocate memory for their callers: their frames say nothing of who wanted it.
 */
#ifndef FGPROF_PROFILE_ALLOCATORS_H
#define FGPROF_PROFILE_ALLOCATORS_H

#include "profile/profile.h"

/* How many of a stack's first locations are in such functions, and in nothing else. At least one
 * location of the stack is left over. */
uint32_t allocators_count_leading(const struct fgprof_profile *profile, uint32_t stack);

/* Takes such functions away that are inlined in the stack's first location. */
void allocators_trim_first(struct fgprof_profile *profile, uint32_t stack);

#endif
