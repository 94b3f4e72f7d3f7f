/* The part of a stack that shows where a thread was created, or where it began. The rest is library
 * code that all threads share. */
#ifndef FGPROF_PROFILE_MAKERS_H
#define FGPROF_PROFILE_MAKERS_H

#include "profile/profile.h"

/* Removes pthread_create(3) and the functions that it calls from the stack that created a thread.
 * Returns 0 or -ENOMEM. */
int makers_drop_calls(struct fgprof_profile *profile, uint32_t *stack);

/* Keeps a thread's first frames, up to the first that is not in a library. Returns 0 or -ENOMEM. */
int makers_keep_start(struct fgprof_profile *profile, uint32_t *stack);

/* The function at that location; "" if it has no name, or the stack is empty. */
const char *makers_main_function(const struct fgprof_profile *profile, uint32_t stack);

#endif
