/* What the caller of unwinding can do to get a better result. */
#ifndef FGPROF_UNWIND_HINTS_H
#define FGPROF_UNWIND_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unwind_hints {
    size_t stack_bytes_used; /* how much of the snapshot's stack was needed */
    bool needs_more_stack;   /* the copy ended too early; the stack's mapping goes on */
    bool used_other_stack;
    uint64_t missing_address;  /* cut because this address is in neither stack; else 0 */
    uint64_t function;         /* cut because the frame pointer is unknown: start of the function
                                  that needs it; else 0 */
    uint64_t function_address; /* where the frame is in that function */
    uint64_t function_sp;      /* the stack pointer there; the frame lies above it */
    bool has_unknown_address;  /* a frame lies in no known mapping */
    uint64_t unlearnt_address; /* of a frame in generated code: see unwinder_learn; else 0 */
};

#endif
