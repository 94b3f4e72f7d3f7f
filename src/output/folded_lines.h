/* Stacks as lines of text, "root;caller;leaf", as flamegraph.pl reads them
 * (brendangregg/FlameGraph). */
#ifndef FGPROF_OUTPUT_FOLDED_LINES_H
#define FGPROF_OUTPUT_FOLDED_LINES_H

#include "profile/view.h"

struct folded_line {
    char *stack;
    uint64_t count; /* ticks; of objects what is shown first: bytes or a number */
};

struct folded_lines {
    struct folded_line *items; /* sorted bytewise; each stack is there once */
    size_t count;
};

/* Folds the view's samples as the profile's folded_flags say. Returns 0, -ENODATA if they ask for
 * elapsed time and it is not known, or -ENOMEM. */
int folded_lines_make(const struct fgprof_profile *profile, const struct profile_view *view,
                      struct folded_lines *ret_lines);
void folded_lines_free(struct folded_lines *lines);

#endif
