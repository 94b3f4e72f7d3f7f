/* Makes profiles of a recording, at its end or while it goes on, of all of it or of its last
 * part. */
#ifndef FGPROF_RECORDER_PROFILE_H
#define FGPROF_RECORDER_PROFILE_H

#include "recorder/recorder.h"

/* Makes the profile of a recording that has ended. Returns 0 or -ENOMEM. */
int recorder_profile(struct fgprof_recorder *recorder, fgprof_profile **ret_profile);

/* See fgprof_recorder_moment. */
int recorder_checkpoint(struct fgprof_recorder *recorder, struct fgprof_moment **ret_checkpoint);

/* See fgprof_recorder_profile_since. NULL: since the start. */
int recorder_profile_since(struct fgprof_recorder *recorder, const struct fgprof_moment *checkpoint,
                           fgprof_profile **ret_profile);

/* See fgprof_recorder_profile_next. */
int recorder_profile_next(struct fgprof_recorder *recorder, struct fgprof_moment **checkpoint,
                          fgprof_profile **ret_profile);

/* See fgprof_recorder_profile_last. */
int recorder_profile_last(struct fgprof_recorder *recorder, uint64_t last_ns,
                          fgprof_profile **ret_profile);

/* See fgprof_recorder_objects. */
int recorder_objects(struct fgprof_recorder *recorder, enum fgprof_kind kind, const char *name,
                     fgprof_profile **ret_profile);

/* See fgprof_recorder_count_objects. */
int recorder_count_objects(struct fgprof_recorder *recorder, enum fgprof_kind kind,
                           const char *name, uint64_t *ret_count);

/* See fgprof_recorder_check_objects. */
int recorder_check_objects(struct fgprof_recorder *recorder, enum fgprof_kind kind);

#endif
