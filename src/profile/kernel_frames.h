/* The kernel's part of a stack, above the function that called it. */
#ifndef FGPROF_PROFILE_KERNEL_FRAMES_H
#define FGPROF_PROFILE_KERNEL_FRAMES_H

#include "profile/profile.h"

/* Replaces *stack, a stack of the profile, by the one that continues from it through the functions
 * `names`, leaf first, each followed by a line feed. Returns 0 or -ENOMEM. */
int kernel_frames_add(struct fgprof_profile *profile, const char *names, uint32_t *stack);

#endif
