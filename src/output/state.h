/* The state of a sample's thread in words. */
#ifndef FGPROF_OUTPUT_STATE_H
#define FGPROF_OUTPUT_STATE_H

#include "base/name.h"
#include "profile/profile.h"

/* "running", "runnable", "sleeping", "uninterruptible", "stopped" or "unknown". Static. */
const char *state_name(uint32_t state);

/* Appends the state as a frame: "[running]", "[runnable]", "[stopped]", "[unknown]". For a sleeping
 * thread this is what it waits for, such as "[mutex g_lock]", or if that is not known, its system
 * call, such as "[read]"; for an uninterruptible one the wait channel, or else the call, such as
 * "[uninterruptible: io_schedule]". */
void state_append_frame(struct buffer *buffer, const struct fgprof_profile *profile,
                        const struct profile_sample *sample);

#endif
