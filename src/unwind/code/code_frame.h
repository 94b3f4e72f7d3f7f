/* Where a function without call frame information has its return address, read from its machine
 * code. The build compiles one of x86_64/code_frame.c and aarch64/code_frame.c. */
#ifndef FGPROF_UNWIND_CODE_CODE_FRAME_H
#define FGPROF_UNWIND_CODE_CODE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_FRAME_BYTES_MAX 8192 /* how far a function is followed from its start */

#define CODE_STUB_BYTES_BEFORE 16
#define CODE_STUB_BYTES 48

enum code_frame_kind {
    CODE_FRAME_UNKNOWN,
    CODE_FRAME_BY_SP,      /* known from the stack pointer */
    CODE_FRAME_BY_POINTER, /* known from the frame pointer, which is set up */
    CODE_FRAME_LOST,       /* nothing leads to it, not even the frame pointer */
};

struct code_frame {
    enum code_frame_kind kind;
    /* For CODE_FRAME_BY_SP: where things are, in bytes above the stack pointer. */
    int32_t caller_sp; /* the stack pointer, once the function has returned */
    bool is_in_link;   /* the return address is in the link register; or else: */
    int32_t return_address;
    bool has_saved_frame_pointer; /* false: the caller's is still in the register */
    int32_t saved_frame_pointer;
    bool has_lost_frame_pointer; /* the caller's is nowhere */
};

/* Follows `code`, which begins with the function, to the instruction that contains the byte at
 * `at`, and returns the frame before that instruction. Jumps within the code are followed. Code
 * that is only reached from elsewhere, or through a jump table, is unknown. */
struct code_frame code_frame_at(const uint8_t *code, size_t code_bytes, size_t at);

/* The same in a linkage stub (an entry of the PLT), which has no symbol. `code` is the code around
 * the instruction, which begins at byte CODE_STUB_BYTES_BEFORE. */
struct code_frame code_frame_in_stub(const uint8_t code[CODE_STUB_BYTES]);

#endif
