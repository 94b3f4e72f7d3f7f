/* How a location is called where it has no function name. */
#ifndef FGPROF_OUTPUT_FRAME_H
#define FGPROF_OUTPUT_FRAME_H

#include "output/text_buffer.h"
#include "profile/profile.h"

/* Appends "[libfoo.so]", or "[unknown]" where the address lies in no file. */
void frame_append_unnamed(struct text_buffer *buffer, const struct fgprof_profile *profile,
                          const struct profile_location *location);

#endif
