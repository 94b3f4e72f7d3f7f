/* A recording's file: gzip around what read.h reads. */
#ifndef FGPROF_KEPT_FILE_H
#define FGPROF_KEPT_FILE_H

#include "profile/profile.h"

/* As fgprof_profile_read and fgprof_recording_version. */
int kept_file_read(const char *path, struct fgprof_profile **ret_profile);
int kept_file_version(const char *path, unsigned *ret_version);

#endif
