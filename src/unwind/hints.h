/* What the caller of unwinding can do for a better result. */
#ifndef FGPROF_UNWIND_HINTS_H
#define FGPROF_UNWIND_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unwind_hints {
    size_t stack_bytes_used; /* how much of the snapshot's stack was needed */
    bool needs_more_stack;   /* the copy ended too early, and the stack's mapping does not */
    bool used_other_stack;
    uint64_t missing_address;  /* cut for want of what is there, in neither stack; else 0 */
    uint64_t function;         /* cut for want of the frame pointer: the start of the function that
                                  needs it; else 0 */
    uint64_t function_address; /* where in it the frame is */
    uint64_t function_sp;      /* the stack pointer in it: its frame lies above */
    bool has_unknown_address;  /* a frame lies in no known mapping */
    uint64_t unlearnt_address; /* a frame's, in generated code: see unwinder_learn; else 0 */
};

#endif
