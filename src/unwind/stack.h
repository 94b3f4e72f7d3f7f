/* An unwound stack: code addresses, leaf first, and how it ended. */
#ifndef FGPROF_UNWIND_STACK_H
#define FGPROF_UNWIND_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stack_cut {
    STACK_WHOLE,              /* it ends at its thread's first frame */
    STACK_CUT_AT_MAX_DEPTH,   /* deeper than was asked for */
    STACK_CUT_NO_UNWIND_INFO, /* nothing says where the last frame's caller is */
    STACK_CUT_NO_REGISTER,    /* a register is needed that a thread read asleep does not show */
    STACK_CUT_UNREADABLE,     /* no more of the stack's memory could be read */
    STACK_CUT_NOT_CAPTURED,   /* the thread could not be observed in time */
    STACK_CUT_NOT_KEPT,       /* nobody has the stack that made an object */
    STACK_CUT_UNREAD,         /* what says where the last frame's caller is could not be read */
    STACK_KERNEL_ONLY,        /* the thread works in the kernel alone, and has no stack outside */
    STACK_CUT_COUNT
};

struct stack {
    /* The address to look each frame up by: see unwind/code_address.h. */
    uint64_t *addresses;
    size_t depth, capacity;
    enum stack_cut cut;
};

/* What the caller of unwinding can do to get a better result. */
struct unwind_hints {
    size_t stack_bytes_used; /* how much of the snapshot's stack was needed */
    bool needs_more_stack;   /* the copy ended too early; the stack's mapping continues */
    bool used_other_stack;
    uint64_t
        missing_address;   /* the stack is cut because this address is in neither stack; else 0 */
    uint64_t missing_word; /* cut because this word, which is on no stack, is needed; else 0 */
    uint64_t function;     /* cut because the frame pointer is unknown: start of the function
                              that needs it; else 0 */
    uint64_t function_address; /* where the frame is in that function */
    uint64_t function_sp;      /* the stack pointer there; the frame lies above it */
    bool has_unknown_address;  /* a frame lies in no known mapping */
    uint64_t unlearnt_address; /* of a frame in generated code: see rule_tables_learn_generated;
                                  else 0 */
};

#endif
