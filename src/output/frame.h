/* The label for a location without a function name. */
#ifndef FGPROF_OUTPUT_FRAME_H
#define FGPROF_OUTPUT_FRAME_H

#include "output/name.h"
#include "profile/profile.h"

/* Appends "[libfoo.so]", or "[unknown]" if the address is in no file. With the address, if the file
 * has one for it, appends "libfoo.so+0x1234": the file's own address, as in symbol tables, objdump
 * and addr2line. */
void frame_append_unnamed(struct buffer *buffer, const struct fgprof_profile *profile,
                          const struct profile_location *location, bool with_address);

#endif
