/* What instructions do to the registers that lead to a caller (Arm Architecture Reference Manual
 * for A-profile, C4.1, "A64 instruction set encoding").
 *
 * Of the registers, only the stack pointer, the frame pointer and the link register matter: how
 * they are moved, stored and loaded by the few instructions that compilers use for that. Any other
 * instruction that writes one makes it unknown. */
#ifndef FGPROF_UNWIND_AARCH64_VALUES_H
#define FGPROF_UNWIND_AARCH64_VALUES_H

#include "unwind/code/code_return.h"

#define STORED_MAX 8

enum { FRAME_POINTER = 29, LINK = 30, STACK_POINTER = 31 };

/* Where the frame pointer or the link register was stored on the way, and what it was. */
struct stored {
    struct code_value at, value;
};

/* In terms of the registers where the code was entered. */
struct values {
    struct code_value sp, frame_pointer, link;
    struct stored stored[STORED_MAX];
    unsigned stored_count;
};

static const struct code_value unknown_value = {.kind = CODE_VALUE_UNKNOWN};

/* Before the first instruction. */
struct values values_begin(void);

void values_follow(struct values *values, uint32_t instruction);

bool value_is_same(const struct code_value *left, const struct code_value *right);

#endif
