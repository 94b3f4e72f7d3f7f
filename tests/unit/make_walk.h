/* An address space, a stack and registers made by hand, around a module that is (see make_cfi.h).
 */
#ifndef FGPROF_TESTS_MAKE_WALK_H
#define FGPROF_TESTS_MAKE_WALK_H

#include "make_cfi.h"
#include "unwind/walk.h"

#ifdef __x86_64__
enum { RBX = BASE, RBP = FP, RSP = SP, RIP = PC };
#endif

#define MADE_BIAS 0x555500000000u /* added to the module's own addresses */
#define MADE_JIT 0x7f0000000000u  /* code that is not from a file */
#define MADE_STACK 0x7ffd00000000u
#define MADE_WORDS 8192u

struct made_walk {
    struct made_section eh;
    uint8_t code[MADE_CODE_BYTES];
    struct module module;
    struct mapping mappings[2];
    struct space space;
    uint64_t words[MADE_WORDS];
    struct snapshot snapshot;
    size_t max_depth;
    uint64_t signature_mask; /* the bits of a signed return address that hold the signature */
    struct rule_tables tables;
    struct stack stack;
    struct unwind_hints hints;
};

/* The process's address for an offset in the module's code. */
static inline uint64_t code_at(uint64_t offset)
{
    return MADE_BIAS + MADE_ADDRESS + offset;
}

static inline uint64_t word_at(uint64_t number)
{
    return MADE_STACK + 8 * number;
}

/* Starts with code of nops and no unwind information; functions are added to it. */
static inline void begin_module(struct made_walk *made)
{
    memset(made, 0, sizeof *made);
    put_nops(made->code, sizeof made->code);
}

/* Sets how the `bytes` of code from `start` on are unwound. */
static inline void put_function(struct made_walk *made, uint64_t start, uint64_t bytes,
                                const uint8_t *program, size_t program_bytes)
{
    uint64_t cie = put_cie(&made->eh, &made_eh_form, BYTES(MADE_ENTRY_ROW));
    put_fde(&made->eh, &made_eh_form, cie, MADE_ADDRESS + start, bytes, program, program_bytes);
}

static inline void put_signal_function(struct made_walk *made, uint64_t start, uint64_t bytes,
                                       const uint8_t *program, size_t program_bytes)
{
    uint64_t cie = put_cie(&made->eh, &made_signal_form, NULL, 0);
    put_fde(&made->eh, &made_signal_form, cie, MADE_ADDRESS + start, bytes, program, program_bytes);
}

/* Writes a direct call that returns to `offset`. */
static inline void put_call(struct made_walk *made, uint64_t offset, uint64_t target)
{
#ifdef __aarch64__
    uint32_t call = 0x94000000u | ((uint32_t)(target - (offset - 4)) >> 2 & 0x3ffffffu); /* bl */
    memcpy(made->code + offset - 4, &call, sizeof call);
#else
    int32_t displacement = (int32_t)(target - offset);
    made->code[offset - 5] = 0xe8;
    memcpy(made->code + offset - 4, &displacement, sizeof displacement);
#endif
}

static inline void put_code(struct made_walk *made, uint64_t offset, const uint8_t *code,
                            size_t bytes)
{
    memcpy(made->code + offset, code, bytes);
}

/* exit(2), a thread's last call. */
static const uint8_t made_thread_end[] = {
#ifdef __aarch64__
    0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 /* mov x8, #93; svc #0 */
#else
    0xb8, 60, 0, 0, 0, 0x0f, 0x05 /* mov $60,%eax; syscall */
#endif
};

/* The module is as it is to be: it is mapped, and code of no file elsewhere. */
static inline void end_module(struct made_walk *made)
{
    make_module(&made->module, made->code, &made->eh, NULL);
    made->mappings[0] = (struct mapping){
        .start = code_at(0),
        .end = code_at(MADE_CODE_BYTES),
        .module = &made->module,
        .bias = MADE_BIAS,
        .has_bias = true,
    };
    made->mappings[1] = (struct mapping){.start = MADE_JIT, .end = MADE_JIT + 0x1000};
    made->space = (struct space){.mappings = made->mappings, .mapping_count = 2};
    made->snapshot.stack.address = MADE_STACK;
    made->snapshot.stack.memory = (unsigned char *)made->words;
    made->snapshot.stack.bytes = sizeof made->words;
    made->snapshot.stack.end = MADE_STACK + sizeof made->words;
    made->snapshot.stack.end_is_known = true;
    made->max_depth = 100;
}

static inline void made_walk_free(struct made_walk *made)
{
    rule_tables_free(&made->tables);
    free(made->stack.addresses);
    made_module_free(&made->module);
}

static inline void set_register(struct made_walk *made, unsigned number, uint64_t value)
{
    made->snapshot.registers.values[number] = value;
    made->snapshot.registers.known |= 1ull << number;
}

/* What the last call left in the link register, if the architecture has one. */
static inline void set_link(struct made_walk *made, uint64_t value)
{
    if (architecture.link != REGISTERS_MAX)
        set_register(made, architecture.link, value);
}

static inline void forget_register(struct made_walk *made, unsigned number)
{
    made->snapshot.registers.values[number] = 0xbad;
    made->snapshot.registers.known &= ~(1ull << number);
}

/* Unwinds a thread whose pc is `pc` and whose stack pointer is at word `sp_word` of the stack. */
static inline int walk_from(struct made_walk *made, uint64_t pc, uint64_t sp_word)
{
    struct walk walk = {.tables = &made->tables,
                        .space = &made->space,
                        .snapshot = &made->snapshot,
                        .max_depth = made->max_depth,
                        .stack = &made->stack,
                        .hints = &made->hints,
                        .code_mask = ~made->signature_mask};
    set_register(made, architecture.pc, pc);
    set_register(made, architecture.sp, word_at(sp_word));
    made->stack.depth = 0;
    made->stack.cut = STACK_WHOLE;
    made->hints = (struct unwind_hints){0};
    return walk_by_rules(&walk);
}

static inline void assert_addresses(const struct stack *stack, const uint64_t *addresses,
                                    size_t count)
{
    for (size_t i = 0; i < count && i < stack->depth; i++)
        assert_int_equal(stack->addresses[i], addresses[i]);
    assert_int_equal(stack->depth, count);
}
#define ASSERT_STACK(stack, how, ...)                                                              \
    do {                                                                                           \
        const uint64_t expected[] = {__VA_ARGS__};                                                 \
        assert_int_equal((stack)->cut, how);                                                       \
        assert_addresses(stack, expected, sizeof expected / sizeof *expected);                     \
    } while (0)

#endif
