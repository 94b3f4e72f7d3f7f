/* Recordings: whole profiles in files. write.c describes the format. */
#ifndef FGPROF_RECORDING_RECORDING_H
#define FGPROF_RECORDING_RECORDING_H

#include "base/sink.h"
#include "profile/profile.h"

/* Writes all samples, whatever the view, without the gzip around them. Errors are in the sink. */
void recording_write(const struct fgprof_profile *profile, struct sink *sink);

/* Makes a profile of the inflated bytes. Nothing can be added to that profile. Errors as in
 * fgprof_profile_read. */
int recording_parse(const uint8_t *data, size_t bytes, struct fgprof_profile **ret_profile);

#endif
