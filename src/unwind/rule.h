/* The rule of one code address: where the caller's frame is, in the few words that almost all code
 * needs. It is made once from the address's row of call frame information, and then applied to
 * every stack that has a frame there. */
#ifndef FGPROF_UNWIND_RULE_H
#define FGPROF_UNWIND_RULE_H

#include "unwind/cfi/cfi.h"

enum rule_kind {
    RULE_NONE,          /* no call frame information: the frame pointer may lead on */
    RULE_CALLER,        /* the fields below lead to the caller */
    RULE_FIRST_FRAME,   /* there is no caller: the stack ends here */
    RULE_SIGNAL_FRAME,  /* the caller's registers are where the kernel put them for the handler */
    RULE_UNKNOWN_FRAME, /* there is a caller, but nothing shows where, not even the frame pointer;
                           or what its call frame information says can't be said in this form */
    RULE_ON_THE_MOVE,   /* about to go on in another frame, as longjmp is: it is unknown which of
                           two is the caller */
    RULE_NEW_STACK,     /* the fields below lead to the caller, or else a thread has just begun
                           here */
    RULE_LEFT_STACK,    /* the fields below lead to the caller, or else it is on a stack that the
                           function left, below where the frame pointer points */
    RULE_RUNS_C,        /* the fields below lead to the caller, once the stack pointer is what it
                           was on the goroutine's stack: Go's asmcgocall, on aarch64 */
    RULE_UNREAD,        /* the module could not be read: nothing is known, nor guessed */
    RULE_KINDS
};

/* A place: register + offset, where `register` may be RULE_CFA; or the word in memory there. */
struct rule_place {
    uint8_t register_number;
    bool is_in_memory;
    int32_t offset;
};
#define RULE_CFA 0xff

struct rule {
    uint8_t kind;           /* enum rule_kind */
    bool has_frame_pointer; /* the caller's is known: it was saved, or is unchanged */
    bool may_not_be_saved;  /* unchanged if the frame pointer does not point to where it is saved */
    bool may_leave_stack;   /* the caller's frame may be on another stack */
    bool is_from_code;      /* not from the module, so it must be checked */
    bool has_no_record;   /* of is_from_code: the frame pointer leads past the caller, or nowhere */
    bool is_no_call;      /* what returns to the next address was not called here, but made to
                             return there */
    bool caller_is_exact; /* the caller did not call: it was made to look so, at any instruction */
    bool is_at_return;    /* the instruction there returns */
    bool has_caller;      /* always: a return address of 0 is not the stack's end, but wrong */
    struct rule_place cfa;
    uint8_t cfa_index, cfa_scale; /* a register that is multiplied and added at `cfa`; 0: none */
    uint32_t kept;                /* a bit for each register that the caller has unchanged */
    int32_t cfa_offset;           /* added to the value at `cfa` */
    struct rule_place return_address;
    struct rule_place frame_pointer;
    int32_t link_offset;         /* the caller's link register was saved at CFA + offset; 0: it is
                                    not known */
    int32_t base_pointer_offset; /* the caller's was saved at CFA + offset; or one of these: */
};
#define RULE_BASE_POINTER_SAME 0
#define RULE_BASE_POINTER_LOST 1

/* Makes the rule of `address`, which must lie in the entry's function. */
struct rule rule_make(const struct cfi_entry *entry, uint64_t address);

#endif
