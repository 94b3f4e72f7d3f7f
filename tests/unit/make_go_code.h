/* Functions of Go with code made by hand: nops and calls. All are of the same length. */
#ifndef FGPROF_TESTS_MAKE_GO_CODE_H
#define FGPROF_TESTS_MAKE_GO_CODE_H

#include "make_pclntab.h"

#define GO_CODE_BYTES 0x40u

/* Where a function's code is, in the module. */
static inline uint64_t go_code_at(unsigned function, uint64_t at)
{
    return MADE_GO_CODE + function * GO_CODE_BYTES + at;
}

static inline void make_go_code(struct made_go *made, const struct made_function *functions,
                                size_t count)
{
    struct made_function sized[MADE_GO_FUNCTIONS_MAX];
    assert_true(count <= MADE_GO_FUNCTIONS_MAX);
    memcpy(sized, functions, count * sizeof *functions);
    for (size_t i = 0; i < count; i++)
        sized[i].code_bytes = GO_CODE_BYTES;
    make_go(made, PCLNTAB_1_18, sized, count);
#ifdef __aarch64__
    for (uint64_t at = 0; at < count * GO_CODE_BYTES; at += 4)
        put_go32(made, go_code_at(0, at), 0xd503201fu); /* nop */
#else
    memset(made->bytes + 0x1000, 0x90, count * GO_CODE_BYTES);
#endif
}

/* A direct call that returns to `at`. */
static inline void put_go_call(struct made_go *made, unsigned function, uint64_t at,
                               unsigned target)
{
    uint64_t next = go_code_at(function, at);
#ifdef __aarch64__
    uint64_t distance = go_code_at(target, 0) - (next - 4);
    put_go32(made, next - 4, 0x94000000u | (distance >> 2 & 0x3ffffff)); /* bl */
#else
    put_go(made, next - 5, "\xe8", 1);
    put_go32(made, next - 4, go_code_at(target, 0) - next);
#endif
}

/* A call through a register that returns to `at`. */
static inline void put_go_indirect_call(struct made_go *made, unsigned function, uint64_t at)
{
#ifdef __aarch64__
    put_go32(made, go_code_at(function, at) - 4, 0xd63f0060u); /* blr x3 */
#else
    put_go(made, go_code_at(function, at) - 2, "\xff\xd7", 2); /* call *%rdi */
#endif
}

#endif
