/* An unwound stack: code addresses, leaf first, and how it ended. */
#ifndef FGPROF_UNWIND_STACK_H
#define FGPROF_UNWIND_STACK_H

#include <stddef.h>
#include <stdint.h>

enum stack_cut {
    STACK_WHOLE,              /* it ends at its thread's first frame */
    STACK_CUT_AT_MAX_DEPTH,   /* deeper than was asked for */
    STACK_CUT_NO_UNWIND_INFO, /* nothing says where the last frame's caller is */
    STACK_CUT_NO_REGISTER,    /* a register is needed that a thread read asleep does not show */
    STACK_CUT_UNREADABLE,     /* no more of the stack's memory could be read */
    STACK_CUT_NOT_CAPTURED,   /* the thread could not be stopped in time */
    STACK_CUT_NOT_KEPT,       /* nobody has the stack that made an object */
    STACK_CUT_COUNT
};

struct stack {
    /* The address to look each frame up by: see unwind/code_address.h. */
    uint64_t *addresses;
    size_t depth, capacity;
    enum stack_cut cut;
};

#endif
