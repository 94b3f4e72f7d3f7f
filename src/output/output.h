/* The writers: one a format. Errors are in the sink. */
#ifndef FGPROF_OUTPUT_OUTPUT_H
#define FGPROF_OUTPUT_OUTPUT_H

#include "output/sink.h"
#include "profile/profile.h"

void output_folded(const struct fgprof_profile *profile, struct sink *sink);
void output_pprof(const struct fgprof_profile *profile, struct sink *sink);
void output_text(const struct fgprof_profile *profile, struct sink *sink);

#endif
