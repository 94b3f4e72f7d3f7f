/* Leaves out what is not the program's own. */
#ifndef FGPROF_PROFILE_LEAVE_OUT_H
#define FGPROF_PROFILE_LEAVE_OUT_H

#include "profile/profile.h"

/* Removes all samples with this function in their stack: its name is that in the symbol table. In
 * timelines their threads are absent then. Returns 0 or -ENOMEM. */
int profile_leave_out(struct fgprof_profile *profile, const char *function);

#endif
