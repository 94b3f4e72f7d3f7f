/* Stacks of code that returns through a register, as on AArch64. */
#include "unit.h"

#ifdef __aarch64__

#include "make_walk.h"

/* `leaf` makes no calls; `framed` has a frame record from its third instruction on; `caller` also
 * has one. None has call frame information, but symbols show where they begin. */

enum { X29 = 29, X30 = 30 };

/* The offsets of the pieces of code below. */
enum {
    LEAF = 0x100,
    FRAMED = 0x200,
    CALLER = 0x300,
    STUB = 0x400,
    TWO_WAYS = 0x500,
    REALIGNED = 0x600,
    OF_GO = 0x700,
    FIRST = 0x800,
    FIRST_STUB = 0x900,
    RESOLVE = 0xa00,
    DESCRIBED = 0xb00,
    START = 0xc00,
    FAILS = 0xd00,
    GOES_ON = 0xe00,
    INNER = 0xe08,
    SAVING = 0xf00,
    UNREADABLE = 0x1000
};

static struct made_walk made;

static const uint32_t leaf[] = {
    0xd503233f, /* paciasp */
    0xd10083ff, /* sub sp, sp, #32 */
    0xb9000fe0, /* str w0, [sp, #12] */
    0x910083ff, /* add sp, sp, #32 */
    0xd50323bf, /* autiasp */
    0xd65f03c0, /* ret */
};
static const uint32_t framed[] = {
    0xd503233f, /* paciasp */
    0xa9be7bfd, /* stp x29, x30, [sp, #-32]! */
    0x910003fd, /* mov x29, sp */
    0xf9000bf3, /* str x19, [sp, #16] */
    0x97ffffbc, /* bl LEAF */
    0xf9400bf3, /* ldr x19, [sp, #16] */
    0xa8c27bfd, /* ldp x29, x30, [sp], #32 */
    0xd65f0bff, /* retaa */
};
static const uint32_t caller[] = {
    0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
    0x910003fd, /* mov x29, sp */
    0x97ffffbe, /* bl FRAMED */
    0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
    0xd65f03c0, /* ret */
};
static const uint32_t stub[] = {
    0x90000010, /* adrp x16, 0 */
    0xf9400211, /* ldr x17, [x16] */
    0x91000210, /* add x16, x16, #0 */
    0xd61f0220, /* br x17 */
};
static const uint32_t two_ways[] = {
    0x34000080, /* cbz w0, 4 instructions on */
    0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
    0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
    0xd65f03c0, /* ret */
    0xd65f03c0, /* ret */
};
static const uint32_t realigned[] = {
    0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
    0x910003fd, /* mov x29, sp */
    0x927cec1f, /* and sp, x0, #-16 */
    0x910003bf, /* mov sp, x29 */
    0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
    0xd65f03c0, /* ret */
};

static const uint32_t first_stub[] = {
    0xa9bf7bf0, /* stp x16, x30, [sp, #-16]! */
    0x90000010, /* adrp x16, 0 */
    0xf9400211, /* ldr x17, [x16] */
    0x91000210, /* add x16, x16, #0 */
    0xd61f0220, /* br x17 */
};

/* As made by Go's compiler: the frame pointer is saved below the stack pointer. */
static const uint32_t of_go[] = {
    0xf81e0ffe, /* str x30, [sp, #-32]! */
    0xf81f83fd, /* stur x29, [sp, #-8] */
    0xd10023fd, /* sub x29, sp, #8 */
    0x97fffe3d, /* bl FRAMED */
    0xf85f83fd, /* ldur x29, [sp, #-8] */
    0xf84207fe, /* ldr x30, [sp], #32 */
    0xd65f03c0, /* ret */
};

/* Where the program starts. */
static const uint32_t start[] = {
    0x97fffd40, /* bl LEAF */
    0xd2800ba8, /* mov x8, #93 */
    0xd4000001, /* svc #0 */
};
/* It does not return, so that only its beginning tells of its frame. */
static const uint32_t fails[] = {
    0xf81f0ffe, /* str x30, [sp, #-16]! */
    0x97fffcff, /* bl LEAF */
    0xd4200020, /* brk #1 */
};
/* Its rest has a symbol, too. */
static const uint32_t goes_on[] = {
    0xd10043ff, /* sub sp, sp, #16 */
    0x14000001, /* b INNER */
    0x910043ff, /* add sp, sp, #16 */
    0xd65f03c0, /* ret */
};
/* It has no frame record. */
static const uint32_t saving[] = {
    0xf81f0ffe, /* str x30, [sp, #-16]! */
    0x97fffc7f, /* bl LEAF */
    0xf84107fe, /* ldr x30, [sp], #16 */
    0xd65f03c0, /* ret */
};
static struct function_range functions[] = {
    {MADE_ADDRESS + START, MADE_ADDRESS + START + sizeof start},
    {MADE_ADDRESS + FAILS, MADE_ADDRESS + FAILS + sizeof fails},
    {MADE_ADDRESS + GOES_ON, MADE_ADDRESS + INNER},
    {MADE_ADDRESS + INNER, MADE_ADDRESS + GOES_ON + sizeof goes_on},
    {MADE_ADDRESS + SAVING, MADE_ADDRESS + SAVING + sizeof saving},
    {MADE_ADDRESS + UNREADABLE, MADE_ADDRESS + UNREADABLE + 0x20},
};

static void put_words(uint64_t offset, const uint32_t *words, size_t bytes)
{
    put_code(&made, offset, (const uint8_t *)words, bytes);
}

static int set_up(void **state)
{
    (void)state;
    begin_module(&made);
    memset(made.code, 0, sizeof made.code); /* udf: no path continues from here */
    put_words(LEAF, leaf, sizeof leaf);
    put_words(FRAMED, framed, sizeof framed);
    put_words(CALLER, caller, sizeof caller);
    put_words(STUB, stub, sizeof stub);
    put_words(TWO_WAYS, two_ways, sizeof two_ways);
    put_words(REALIGNED, realigned, sizeof realigned);
    put_words(OF_GO, of_go, sizeof of_go);
    put_words(START, start, sizeof start);
    put_words(FAILS, fails, sizeof fails);
    put_words(GOES_ON, goes_on, sizeof goes_on);
    put_words(SAVING, saving, sizeof saving);
    put_words(FIRST_STUB, first_stub, sizeof first_stub);
    put_words(FIRST, (const uint32_t[]){0x97fffec0}, 4); /* bl CALLER */
    static const struct made_form form = {1, false, "zR", 0x1b, 4, -8, X30};
    uint64_t cie = put_cie(&made.eh, &form, BYTES(DW_CFA_def_cfa, 31, 0));
    put_fde(&made.eh, &form, cie, MADE_ADDRESS + FIRST, 0x20, BYTES(DW_CFA_undefined, X30));
    /* The return address is above the CFA that its information gives. */
    put_fde(&made.eh, &form, cie, MADE_ADDRESS + RESOLVE, 0x20,
            BYTES(DW_CFA_advance_loc | 1, DW_CFA_offset_extended_sf, X30, 0x7f,
                  DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 32));
    /* A record at the bottom of four words. */
    put_words(DESCRIBED, (const uint32_t[]){0x97fffe00}, 4); /* bl CALLER */
    put_fde(&made.eh, &form, cie, MADE_ADDRESS + DESCRIBED, 0x20,
            BYTES(DW_CFA_def_cfa_offset, 32, DW_CFA_offset | X29, 4, DW_CFA_offset | X30, 3));
    end_module(&made);
    made.signature_mask = 0xffffull << 48;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (made.module.functions.items == functions)
        made.module.functions = (struct functions){0};
    made_walk_free(&made);
    return 0;
}

#define SIGNATURE (0x2bull << 56 | 0x7full << 48)

/* Its code shows nothing, and what it has in x29 is no frame pointer. Nothing else is asked for. */
static void test_a_leaf_that_is_only_a_symbol(void **state)
{
    (void)state;
    made.module.functions = (struct functions){
        .items = functions, .count = sizeof functions / sizeof *functions, .were_read = true};
    made.words[8] = 0; /* CALLER's record */
    made.words[9] = code_at(FIRST + 4);
    set_register(&made, X29, 0x12345678);
    set_register(&made, X30, code_at(CALLER + 12));
    assert_int_equal(walk_from(&made, code_at(UNREADABLE + 8), 8), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(UNREADABLE + 8), code_at(CALLER + 11),
                 code_at(FIRST + 3));
    assert_int_equal(made.hints.missing_address, 0);
    assert_false(made.hints.needs_more_stack);
}

/* At any instruction of the leaf, the register has the return address. */
static void test_a_leaf(void **state)
{
    (void)state;
    made.words[8] = word_at(12); /* FRAMED's record */
    made.words[9] = code_at(CALLER + 12) | SIGNATURE;
    made.words[12] = 0; /* CALLER's */
    made.words[13] = code_at(FIRST + 4);
    for (unsigned i = 0; i < sizeof leaf / sizeof *leaf; i++) {
        bool has_frame = i == 2 || i == 3;
        set_register(&made, X29, word_at(8));
        set_register(&made, X30, code_at(FRAMED + 20) | (i > 0 && i < 5 ? SIGNATURE : 0));
        assert_int_equal(walk_from(&made, code_at(LEAF + 4 * i), has_frame ? 4 : 8), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(LEAF + 4 * i), code_at(FRAMED + 19),
                     code_at(CALLER + 11), code_at(FIRST + 3));
    }
}

/* Also before its record exists, and after it is gone. */
static void test_a_function_with_a_frame_record(void **state)
{
    (void)state;
    made.words[12] = 0;
    made.words[13] = code_at(FIRST + 4);
    for (unsigned i = 0; i < sizeof framed / sizeof *framed; i++) {
        bool has_frame = i >= 2 && i <= 6;
        made.words[8] = word_at(12);
        made.words[9] = code_at(CALLER + 12) | SIGNATURE;
        set_register(&made, X29, has_frame && i > 2 ? word_at(8) : word_at(12));
        set_register(&made, X30, i > 4 && i < 7 ? code_at(FRAMED + 20) : code_at(CALLER + 12));
        assert_int_equal(walk_from(&made, code_at(FRAMED + 4 * i), has_frame ? 8 : 12), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(FRAMED + 4 * i), code_at(CALLER + 11),
                     code_at(FIRST + 3));
    }
}

/* For a thread that sleeps in a call, neither register is known. */
static void test_without_registers(void **state)
{
    (void)state;
    made.words[8] = word_at(12);
    made.words[9] = code_at(CALLER + 12);
    made.words[12] = 0;
    made.words[13] = code_at(FIRST + 4);
    assert_int_equal(walk_from(&made, code_at(FRAMED + 16), 8), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(FRAMED + 16), code_at(CALLER + 11),
                 code_at(FIRST + 3));
    /* It is not known where the leaf returns to: its caller's caller is not mistaken for its
     * caller. */
    set_register(&made, X29, word_at(8));
    forget_register(&made, X30);
    assert_int_equal(walk_from(&made, code_at(LEAF + 8), 4), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_at(LEAF + 8));
}

static void test_a_stub(void **state)
{
    (void)state;
    made.words[8] = 0;
    made.words[9] = code_at(FIRST + 4);
    set_register(&made, X29, word_at(8));
    set_register(&made, X30, code_at(CALLER + 12));
    assert_int_equal(walk_from(&made, code_at(STUB + 8), 8), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(STUB + 8), code_at(CALLER + 11),
                 code_at(FIRST + 3));
}

/* The registers that the stub has saved are above the frame of the code to which it jumps. */
static void test_a_function_is_looked_up_when_first_called(void **state)
{
    (void)state;
    made.words[8] = 0;
    made.words[9] = code_at(FIRST + 4);
    made.words[7] = code_at(CALLER + 12);
    set_register(&made, X29, word_at(8));
    set_register(&made, X30, 0);
    for (unsigned i = 1; i < sizeof first_stub / sizeof *first_stub; i++) {
        assert_int_equal(walk_from(&made, code_at(FIRST_STUB + 4 * i), 6), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(FIRST_STUB + 4 * i), code_at(CALLER + 11),
                     code_at(FIRST + 3));
    }
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(walk_from(&made, code_at(RESOLVE + 4 * i), i < 2 ? 6 : 2), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(RESOLVE + 4 * i), code_at(CALLER + 11),
                     code_at(FIRST + 3));
    }
}

static void test_ways_that_agree(void **state)
{
    (void)state;
    made.words[8] = 0;
    made.words[9] = code_at(FIRST + 4);
    set_register(&made, X29, word_at(8));
    set_register(&made, X30, code_at(CALLER + 12));
    assert_int_equal(walk_from(&made, code_at(TWO_WAYS), 8), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(TWO_WAYS), code_at(CALLER + 11),
                 code_at(FIRST + 3));
}

/* The stack pointer is restored from the frame pointer. */
static void test_a_realigned_stack(void **state)
{
    (void)state;
    made.words[8] = word_at(12);
    made.words[9] = code_at(CALLER + 12);
    made.words[12] = 0;
    made.words[13] = code_at(FIRST + 4);
    set_register(&made, X29, word_at(8));
    set_register(&made, X30, 0);
    assert_int_equal(walk_from(&made, code_at(REALIGNED + 12), 3), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(REALIGNED + 12), code_at(CALLER + 11),
                 code_at(FIRST + 3));
}

/* The copy does not include memory below the stack pointer. */
static void test_a_function_of_go(void **state)
{
    (void)state;
    made.words[4] = code_at(CALLER + 12);
    made.words[8] = 0;
    made.words[9] = code_at(FIRST + 4);
    assert_int_equal(walk_from(&made, code_at(OF_GO + 16), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(OF_GO + 16), code_at(CALLER + 11),
                 code_at(FIRST + 3));
}

/* The link register points into the function itself, because it has made a call, and no file shows
 * where it begins. */
static void test_generated_code(void **state)
{
    (void)state;
    made.words[8] = 0;
    made.words[9] = code_at(FIRST + 4);
    made.words[6] = word_at(8);
    made.words[7] = code_at(CALLER + 12);
    set_register(&made, X29, word_at(6));
    set_register(&made, X30, MADE_JIT + 0x40);
    assert_int_equal(walk_from(&made, MADE_JIT + 0x80, 6), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, MADE_JIT + 0x80, code_at(CALLER + 11),
                 code_at(FIRST + 3));
}

/* ---- Generated code whose start is known ---- */

enum { JIT_FRAMED = 0x100, JIT_SAVING = 0x200, JIT_LOSING = 0x300, JIT_OTHER_USE = 0x400 };

static const uint32_t jit_framed[] = {
    0xa9be7bfd, /* 0 stp x29, x30, [sp, #-32]! */
    0x910003fd, /* 1 mov x29, sp */
    0xd63f0040, /* 2 blr x2 */
    0xa8c27bfd, /* 3 ldp x29, x30, [sp], #32 */
    0xd65f03c0, /* 4 ret */
};
static const uint32_t jit_saving[] = {
    0xf81f0ffe, /* 0 str x30, [sp, #-16]! */
    0xd63f0040, /* 1 blr x2 */
    0xf84107fe, /* 2 ldr x30, [sp], #16 */
    0xd65f03c0, /* 3 ret */
};
static const uint32_t jit_losing[] = {
    0xaa1e03e9, /* 0 mov x9, x30 */
    0xd63f0040, /* 1 blr x2 */
    0xd65f0120, /* 2 ret x9 */
};

static const uint32_t jit_other_use[] = {
    0xa9bf7bfd, /* 0 stp x29, x30, [sp, #-16]! */
    0xaa0003fd, /* 1 mov x29, x0 */
    0xd63f0040, /* 2 blr x2 */
};

static void learn(uint64_t function, const uint32_t *code, size_t bytes)
{
    for (uint64_t at = 0; at < bytes; at++)
        assert_int_equal(rule_tables_learn_generated(&made.tables, made.space.id,
                                                     MADE_JIT + function + at, MADE_JIT + function,
                                                     (const uint8_t *)code, bytes),
                         0);
}

static void learn_all(void)
{
    learn(JIT_FRAMED, jit_framed, sizeof jit_framed);
    learn(JIT_SAVING, jit_saving, sizeof jit_saving);
    learn(JIT_LOSING, jit_losing, sizeof jit_losing);
    learn(JIT_OTHER_USE, jit_other_use, sizeof jit_other_use);
    made.words[12] = 0; /* CALLER's record */
    made.words[13] = code_at(FIRST + 4);
}

static void test_generated_code_that_was_learnt(void **state)
{
    (void)state;
    learn_all();
    made.words[8] = word_at(12);
    made.words[9] = code_at(CALLER + 12);
    for (unsigned i = 0; i < sizeof jit_framed / sizeof *jit_framed; i++) {
        uint64_t at = MADE_JIT + JIT_FRAMED + 4 * i;
        bool has_frame = i >= 1 && i <= 3;
        set_register(&made, X29, i == 2 || i == 3 ? word_at(8) : word_at(12));
        set_register(&made, X30, i == 3 ? at : code_at(CALLER + 12));
        assert_int_equal(walk_from(&made, at, has_frame ? 8 : 12), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, at, code_at(CALLER + 11), code_at(FIRST + 3));
    }
}

/* The frame pointer is CALLER's throughout. */
static void test_generated_code_without_a_record(void **state)
{
    (void)state;
    learn_all();
    set_register(&made, X29, word_at(12));
    set_register(&made, X30, MADE_JIT + JIT_SAVING + 8);
    made.words[10] = code_at(CALLER + 12);
    uint64_t leaf_at = MADE_JIT + JIT_FRAMED;
    assert_int_equal(walk_from(&made, leaf_at, 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, leaf_at, MADE_JIT + JIT_SAVING + 7, code_at(CALLER + 11),
                 code_at(FIRST + 3));
    /* A callee's frame record does not tell where the frame is. */
    made.words[6] = word_at(12);
    made.words[7] = MADE_JIT + JIT_SAVING + 8;
    set_register(&made, X29, word_at(6));
    assert_int_equal(walk_from(&made, MADE_JIT + 0x80, 6), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, MADE_JIT + 0x80, MADE_JIT + JIT_SAVING + 7);
    /* Nor that of a function that uses the frame pointer for something else. */
    made.words[6] = word_at(20);
    made.words[7] = MADE_JIT + JIT_OTHER_USE + 12;
    made.words[20] = word_at(12);
    made.words[21] = code_at(CALLER + 12);
    assert_int_equal(walk_from(&made, MADE_JIT + 0x80, 6), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, MADE_JIT + 0x80,
                 MADE_JIT + JIT_OTHER_USE + 11);
}

/* The frame pointer would lead past the caller. */
static void test_generated_code_that_tells_no_caller(void **state)
{
    const uint64_t nowhere = 0x123456789000;
    (void)state;
    learn_all();
    set_register(&made, X29, word_at(12));
    set_register(&made, X30, MADE_JIT + JIT_LOSING + 8);
    assert_int_equal(walk_from(&made, MADE_JIT + JIT_FRAMED, 12), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, MADE_JIT + JIT_FRAMED,
                 MADE_JIT + JIT_LOSING + 7);
    assert_false(made.hints.has_unknown_address);
    set_register(&made, X30, nowhere);
    assert_int_equal(walk_from(&made, MADE_JIT + JIT_FRAMED, 12), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, MADE_JIT + JIT_FRAMED);
    assert_true(made.hints.has_unknown_address);
    forget_register(&made, X30);
    assert_int_equal(walk_from(&made, MADE_JIT + JIT_FRAMED, 12), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, MADE_JIT + JIT_FRAMED);
}

static void put_symbols(void)
{
    made.module.functions = (struct functions){
        .items = functions, .count = sizeof functions / sizeof *functions, .were_read = true};
}

static void test_a_function_that_does_not_return(void **state)
{
    (void)state;
    put_symbols();
    made.words[8] = code_at(CALLER + 12);
    made.words[12] = 0;
    made.words[13] = code_at(FIRST + 4);
    set_register(&made, X29, word_at(12));
    set_register(&made, X30, code_at(FAILS + 8));
    assert_int_equal(walk_from(&made, code_at(LEAF), 8), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(LEAF), code_at(FAILS + 7), code_at(CALLER + 11),
                 code_at(FIRST + 3));
    /* Nothing has called the first function. */
    set_register(&made, X29, 0);
    set_register(&made, X30, code_at(START + 4));
    assert_int_equal(walk_from(&made, code_at(LEAF), 8), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(LEAF), code_at(START + 3));
}

static void test_a_symbol_within_a_function(void **state)
{
    (void)state;
    put_symbols();
    made.words[8] = word_at(12);
    made.words[9] = code_at(FRAMED + 20);
    made.words[10] = 0;
    made.words[11] = code_at(FIRST + 4);
    set_register(&made, X29, word_at(10));
    set_register(&made, X30, code_at(CALLER + 12));
    assert_int_equal(walk_from(&made, code_at(INNER), 8), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(INNER), code_at(CALLER + 11),
                 code_at(FIRST + 3));
}

/* A callee's frame record leads to a function, and does not tell where its frame is. The function's
 * own frame pointer is its caller's. */
static void test_a_function_without_a_record(void **state)
{
    (void)state;
    put_symbols();
    made.words[6] = word_at(12);
    made.words[7] = code_at(SAVING + 8);
    made.words[12] = 0; /* CALLER's record */
    made.words[13] = code_at(FIRST + 4);
    set_register(&made, X29, word_at(6));
    set_register(&made, X30, MADE_JIT + 0x40);
    assert_int_equal(walk_from(&made, MADE_JIT + 0x80, 6), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, MADE_JIT + 0x80, code_at(SAVING + 7));
}

/* Its record lies below what else is in its frame, so that it does not tell where the frame ends:
 * its caller's frame is known by the caller's own record. */
static void test_a_record_at_the_bottom_of_a_frame(void **state)
{
    (void)state;
    made.words[6] = word_at(12);
    made.words[7] = code_at(DESCRIBED + 4);
    made.words[9] = code_at(CALLER + 12); /* left over */
    made.words[12] = word_at(20);
    made.words[13] = code_at(CALLER + 12);
    made.words[20] = 0;
    made.words[21] = code_at(FIRST + 4);
    set_register(&made, X29, word_at(6));
    set_register(&made, X30, MADE_JIT + 0x40);
    assert_int_equal(walk_from(&made, MADE_JIT + 0x80, 6), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, MADE_JIT + 0x80, code_at(DESCRIBED + 3),
                 code_at(CALLER + 11), code_at(FIRST + 3));
}

/* A call through a null pointer. */
static void test_from_no_code(void **state)
{
    (void)state;
    made.words[8] = 0;
    made.words[9] = code_at(FIRST + 4);
    set_register(&made, X29, word_at(8));
    set_register(&made, X30, code_at(CALLER + 12));
    assert_int_equal(walk_from(&made, 0, 8), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, 0, code_at(CALLER + 11), code_at(FIRST + 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_leaf, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_leaf_that_is_only_a_symbol, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_function_with_a_frame_record, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_registers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_stub, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_function_is_looked_up_when_first_called, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_ways_that_agree, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_realigned_stack, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_function_of_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_generated_code, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_generated_code_that_was_learnt, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_generated_code_without_a_record, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_generated_code_that_tells_no_caller, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_function_that_does_not_return, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_symbol_within_a_function, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_function_without_a_record, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_record_at_the_bottom_of_a_frame, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_from_no_code, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("walk_link", tests, NULL, NULL);
}

#else

static void test_another_architecture(void **state)
{
    (void)state;
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_another_architecture)};
    return cmocka_run_group_tests_name("walk_link", tests, NULL, NULL);
}

#endif
