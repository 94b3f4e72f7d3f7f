/* Finds the frame pointer of a thread that was read asleep: /proc does not show it. */
#ifndef FGPROF_UNWIND_FRAME_POINTER_H
#define FGPROF_UNWIND_FRAME_POINTER_H

#include "unwind/unwind.h"

/* Finds the place in the snapshot's stack that the frame pointer must point to. Tries `expected`,
 * if it is not 0; then where the function that needs it restores it from when it returns; then
 * where its instructions so far have put it; then the only place whose return address follows a
 * direct call of that function. A place is believed only if its return address follows a call at
 * all, and the stack then reaches its thread's first frame, the maximum depth, or the end of the
 * copy. Sets the register in the snapshot and returns true, or returns false. `hints` is what
 * unwinding without it said; `scratch` is overwritten. */
bool frame_pointer_find(struct rule_tables *rules, struct space *space, struct snapshot *snapshot,
                        size_t max_depth, const struct unwind_hints *hints, uint64_t expected,
                        struct stack *scratch);

#endif
