/* Writes a profile as a recording. */
#ifndef FGPROF_KEPT_WRITE_H
#define FGPROF_KEPT_WRITE_H

#include "base/sink.h"
#include "profile/profile.h"

/* Writes all samples, whatever the view. Errors are in the sink. */
void kept_write(const struct fgprof_profile *profile, struct sink *sink);

#endif
