/* Finds the call of a function that has since gone on to another stack without saving where it came
 * from in a frame of its own, as Go's runtime goes from a goroutine's stack to its thread's. */
#ifndef FGPROF_UNWIND_LEFT_STACK_H
#define FGPROF_UNWIND_LEFT_STACK_H

#include "unwind/walk.h"

/* `function` is the start of the function, in the process. `frame_pointer` is its caller's: the
 * caller's frame ends there, and the return address lies below, as far as the caller's own rule
 * says. */
struct left_stack {
    uint64_t function;
    uint64_t frame_pointer;
};

/* Whether the return address is at `place`. */
bool left_stack_fits(struct walk *walk, struct rule_tables *tables, const struct left_stack *left,
                     uint64_t place);

/* Sets *ret_place to where the return address is, below the frame pointer. Returns false if it is
 * not found. */
bool left_stack_find(struct walk *walk, struct rule_tables *tables, const struct left_stack *left,
                     uint64_t *ret_place);

#endif
