/* The frames of a stack. A location has one for each of its lines, as inlined functions have lines
 * of their own; a location without lines is a frame without a name. */
#ifndef FGPROF_PROFILE_FRAME_H
#define FGPROF_PROFILE_FRAME_H

#include "base/name.h"
#include "profile/profile.h"

struct profile_frame {
    const struct profile_location *location;
    const struct profile_line *line; /* NULL: the frame has no name */
};

/* A walk over a stack's frames. Zeroed at first. */
struct frame_walk {
    size_t locations; /* that the walk has left behind */
    uint32_t lines;   /* of the next location */
};

/* Each gets the next frame, leaf first or root first. Returns false after the last. */
bool frame_next_from_leaf(const struct fgprof_profile *profile, const struct profile_stack *stack,
                          struct frame_walk *walk, struct profile_frame *ret_frame);
bool frame_next_from_root(const struct fgprof_profile *profile, const struct profile_stack *stack,
                          struct frame_walk *walk, struct profile_frame *ret_frame);

/* A number for the frame, below frame_numbers(): equal frames have equal ones. */
static inline size_t frame_number(const struct fgprof_profile *profile,
                                  const struct profile_frame *frame)
{
    return frame->line ? (size_t)(frame->line - profile->lines)
                       : profile->line_count + (size_t)(frame->location - profile->locations);
}

static inline size_t frame_numbers(const struct fgprof_profile *profile)
{
    return profile->line_count + profile->location_count;
}

/* Whether a function on the stack has this name, as shown or, if `in_symbols`, as in its symbol
 * table. */
bool stack_has_function(const struct fgprof_profile *profile, const struct profile_stack *stack,
                        const char *name, bool in_symbols);

/* Appends "[libfoo.so]", or "[unknown]" if the address is in no file. `with_address`: if the file
 * has an address of its own for it, as in symbol tables, objdump and addr2line, appends
 * "libfoo.so+0x1234". */
void frame_append_unnamed(struct buffer *buffer, const struct fgprof_profile *profile,
                          const struct profile_location *location, bool with_address);

#endif
