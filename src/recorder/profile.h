/* Makes profiles of a recording: at its end, and while it goes on. */
#ifndef FGPROF_RECORDER_PROFILE_H
#define FGPROF_RECORDER_PROFILE_H

#include "recorder/recorder.h"

/* Makes the profile of a recording that has ended. Returns 0 or -ENOMEM. */
int recorder_profile(struct fgprof_recorder *recorder, fgprof_profile **ret_profile);

/* See fgprof_recorder_profile_so_far. */
int recorder_profile_so_far(struct fgprof_recorder *recorder, fgprof_profile **ret_profile);

#endif
