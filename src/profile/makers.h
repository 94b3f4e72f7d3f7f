/* Which part of a stack says who made a thread, or where it began: the rest is code of libraries
 * that all threads have in common. */
#ifndef FGPROF_PROFILE_MAKERS_H
#define FGPROF_PROFILE_MAKERS_H

#include "profile/profile.h"

/* Replaces the stack that made a thread by that of the function that asked for it: without
 * pthread_create(3) and what that calls. Returns 0 or -ENOMEM. */
int makers_drop_calls(struct fgprof_profile *profile, uint32_t *stack);

/* Replaces a thread's own stack by its first frames, up to the first that is not of a library.
 * Returns 0 or -ENOMEM. */
int makers_keep_start(struct fgprof_profile *profile, uint32_t *stack);

/* The function there, "" if it has no name. The stack may be empty. */
const char *makers_main_function(const struct fgprof_profile *profile, uint32_t stack);

#endif
