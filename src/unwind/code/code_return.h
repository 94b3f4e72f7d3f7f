/* Where code returns to, read from the instructions between a place in it and its returns: for code
 * whose start is not even known. The build compiles code_return.c of x86_64/ or of aarch64/. */
#ifndef FGPROF_UNWIND_CODE_CODE_RETURN_H
#define FGPROF_UNWIND_CODE_CODE_RETURN_H

#include "elf/module.h"

enum code_value_kind {
    CODE_VALUE_UNKNOWN,
    CODE_VALUE_REGISTER, /* register + offset */
    CODE_VALUE_MEMORY,   /* the word in memory at register + offset, plus then_offset */
    CODE_VALUE_FAR,      /* the word in memory to which such a CODE_VALUE_MEMORY would point */
};

/* A value in terms of the registers and memory at the given place. */
struct code_value {
    uint8_t kind;            /* enum code_value_kind */
    uint8_t register_number; /* DWARF */
    int32_t offset, then_offset;
};

/* The registers when the code returns. According to the psABI, preserved registers then have the
 * caller's values. */
struct code_return {
    struct code_value sp; /* points to the return address if that is then on the stack; never
                             CODE_VALUE_FAR or unknown */
    struct code_value frame_pointer;
    struct code_value return_address; /* if the architecture returns through a register */
};

/* Follows the code of `module` from the instruction at `address`; `is_after_call`: a call returns
 * there, if it returns. Returns true if any path leads to a return, and all such paths agree on
 * where the return address is. Paths through a computed jump are not followed. */
bool code_return_find(struct module *module, uint64_t address, bool is_after_call,
                      struct code_return *ret_return);

#endif
