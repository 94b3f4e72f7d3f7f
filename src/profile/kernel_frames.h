/* The kernel's part of a stack: above the function that called it. */
#ifndef FGPROF_PROFILE_KERNEL_FRAMES_H
#define FGPROF_PROFILE_KERNEL_FRAMES_H

#include "profile/profile.h"

/* Makes *stack, a stack of the profile, the one that goes on from it through the functions `names`,
 * leaf first, each with a line feed behind it. Returns 0 or -ENOMEM. */
int kernel_frames_add(struct fgprof_profile *profile, const char *names, uint32_t *stack);

#endif
