/* How a location is called where it has no function name. */
#ifndef FGPROF_OUTPUT_FRAME_H
#define FGPROF_OUTPUT_FRAME_H

#include "output/text_buffer.h"
#include "profile/profile.h"

/* Appends "[libfoo.so]", or "[unknown]" where the address lies in no file; with the address, where
 * the file has one for it, "libfoo.so+0x1234": its own, as symbol tables, objdump and addr2line
 * have it. */
void frame_append_unnamed(struct text_buffer *buffer, const struct fgprof_profile *profile,
                          const struct profile_location *location, bool with_address);

#endif
