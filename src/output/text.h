/* Parts of Go's legacy profile text. */
#ifndef FGPROF_OUTPUT_TEXT_H
#define FGPROF_OUTPUT_TEXT_H

#include "base/name.h"
#include "base/sink.h"
#include "profile/profile.h"

/* Appends the addresses of the stack, " 0x1 0x2", as many as fit into a line that pprof reads. */
void text_append_addresses(struct buffer *buffer, const struct fgprof_profile *profile,
                           const struct profile_stack *stack);

/* Writes a row "#\tADDRESS\tFUNCTION+OFFSET\tFILE:LINE" for each frame, in columns. */
void text_put_stack(struct sink *sink, const struct fgprof_profile *profile,
                    const struct profile_stack *stack);

#endif
