/* Where code returns to, read from the instructions between a place in it and its returns: for code
 * of which not even the start is known. The build compiles code_return.c of x86_64/ or of
 * aarch64/. */
#ifndef FGPROF_UNWIND_CODE_CODE_RETURN_H
#define FGPROF_UNWIND_CODE_CODE_RETURN_H

#include "elf/module.h"

enum code_value_kind {
    CODE_VALUE_UNKNOWN,
    CODE_VALUE_REGISTER, /* register + offset */
    CODE_VALUE_MEMORY,   /* what is in memory at register + offset, + then_offset */
    CODE_VALUE_FAR,      /* what is in memory where CODE_VALUE_MEMORY would point */
};

/* A value in the registers and memory of the place that was asked for. */
struct code_value {
    uint8_t kind;            /* enum code_value_kind */
    uint8_t register_number; /* DWARF */
    int32_t offset, then_offset;
};

/* What the registers are when the code returns. By the psABI those that it preserves are then the
 * caller's. */
struct code_return {
    struct code_value sp; /* points to the return address if that is on the stack then; never
                             CODE_VALUE_FAR or unknown */
    struct code_value frame_pointer;
    struct code_value return_address; /* if the architecture returns through a register */
};

/* Follows the code of `module` from the instruction at `address`; `is_after_call`: where a call
 * returns to, if it does. Returns true if some way leads to
 * a return, and all that do agree on where the return address is. Ways through a computed jump are
 * not followed. */
bool code_return_find(struct module *module, uint64_t address, bool is_after_call,
                      struct code_return *ret_return);

#endif
