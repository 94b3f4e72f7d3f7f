/* Handmade stacks, unwound by rules. */
#include "unit.h"

#include "make_walk.h"

#include <errno.h>

/* Where functions begin. A caller is shown at its call, one before its return address. */
enum {
    FIRST = 0x100,  /* has no caller */
    PLAIN = 0x200,  /* has 24 bytes on the stack from its byte 4 on */
    FRAMED = 0x300, /* has a frame pointer from its byte 4 on, and returns at byte 0x20 */
    STUCK = 0x400,  /* has a CFA that is its stack pointer */
    BACKWARDS = 0x500,
    VFORK = 0x600,                 /* has its return address in r5 */
    COMPLEX = 0x700,               /* has it where no rule can express */
    BY_R10 = 0x800,                /* has its CFA in r10 */
    BY_R10_CALLER = BY_R10 + 0x25, /* behind a call of FORGETFUL */
    LOSING = 0x900,                /* loses the frame pointer */
    SAVER = 0xa00,                 /* keeps the frame pointer in r5 */
    REALIGNED = 0xb00,    /* has its CFA pushed, right below where the frame pointer points */
    PLUS_8 = 0xc00,       /* has its CFA - 8 in memory at sp + 16 */
    BY_BASE = 0xd00,      /* has its CFA 32 above where the base pointer points */
    KEEPER = 0xe00,       /* has saved the base pointer, and pops it at byte 0x20 */
    DROPPER = 0xf00,      /* loses the base pointer and r5 */
    JUMPER = 0x1000,      /* is about to jump to the address in r5 */
    FORGETFUL = 0x1100,   /* has 24 bytes; its information lacks that it frees them at byte 0x20 */
    CALLER = 0x1200,      /* has no bytes; calls at its start */
    INDEXED = 0x1300,     /* has its CFA - 8 in memory after an array of r9 words at sp + 8 */
    OTHER_STACK = 0x1400, /* has the stack pointer of its caller, on another stack, at sp + 8 */
    LEAF = 0x1500,    /* has its return address in the link register, and 32 bytes from byte 4 on */
    NO_RULE = 0x2000, /* has no call frame information */
    LAST = 0x3ff0,    /* ends with a call at the end of its mapping */
};

static struct made_walk made;

static void put_functions(void)
{
    put_function(&made, FIRST, 0x100, BYTES(DW_CFA_undefined, RA));
    put_function(&made, PLAIN, 0x100, BYTES(DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 32));
    put_function(&made, FRAMED, 0x100,
                 BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | FP, 2,
                       DW_CFA_advance_loc | 3, DW_CFA_def_cfa_register, FP,
                       DW_CFA_advance_loc | 0x1c, DW_CFA_def_cfa, SP, 8));
    put_function(&made, STUCK, 0x100, BYTES(DW_CFA_def_cfa_offset, 0));
    put_function(&made, BACKWARDS, 0x100, BYTES(DW_CFA_def_cfa_offset_sf, 2));
    put_function(&made, VFORK, 0x100, BYTES(DW_CFA_def_cfa_offset, 0, DW_CFA_register, RA, R5));
    put_function(&made, COMPLEX, 0x100, BYTES(DW_CFA_val_expression, RA, 2, BREG(BASE), 0));
    put_function(&made, BY_R10, 0x100, BYTES(DW_CFA_def_cfa, R10, 0));
    put_function(&made, LOSING, 0x100, BYTES(DW_CFA_undefined, FP));
    put_function(&made, SAVER, 0x100, BYTES(DW_CFA_register, FP, R5));
    put_function(&made, REALIGNED, 0x100,
                 BYTES(DW_CFA_def_cfa_expression, 3, BREG(FP), 0x78, DW_OP_deref, DW_CFA_expression,
                       FP, 2, BREG(FP), 0));
    put_function(
        &made, PLUS_8, 0x100,
        BYTES(DW_CFA_def_cfa_expression, 5, BREG(SP), 16, DW_OP_deref, DW_OP_plus_uconst, 8));
    put_function(&made, BY_BASE, 0x100, BYTES(DW_CFA_def_cfa, BASE, 32, DW_CFA_offset | BASE, 4));
    put_function(&made, KEEPER, 0x100,
                 BYTES(DW_CFA_def_cfa_offset, 16, DW_CFA_offset | BASE, 2,
                       DW_CFA_advance_loc | 0x20, DW_CFA_def_cfa_offset, 8));
    put_function(&made, DROPPER, 0x100, BYTES(DW_CFA_undefined, BASE, DW_CFA_undefined, R5));
    put_function(&made, JUMPER, 0x100,
                 BYTES(DW_CFA_def_cfa, R5, 0, DW_CFA_register, SP, 8, DW_CFA_register, RA, 1));
    put_function(&made, FORGETFUL, 0x100, BYTES(DW_CFA_def_cfa_offset, 32));
#ifdef __x86_64__
    put_code(&made, FORGETFUL + 0x20, (const uint8_t[]){0xc3}, 1);
    put_code(&made, PLAIN + 0x40, (const uint8_t[]){0xc3}, 1);
    put_call(&made, BY_R10_CALLER, FORGETFUL);
#elif defined __aarch64__
    put_function(&made, LEAF, 0x100,
                 BYTES(DW_CFA_AARCH64_negate_ra_state, DW_CFA_def_cfa_offset, 0, DW_CFA_same_value,
                       LR, DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 32));
#endif
    put_function(&made, INDEXED, 0x100,
                 BYTES(DW_CFA_def_cfa_expression, 10, BREG(SP), 8, BREG(R9), 0, DW_OP_lit8,
                       DW_OP_mul, DW_OP_plus, DW_OP_deref, DW_OP_plus_uconst, 8));
    put_signal_function(&made, OTHER_STACK, 0x100,
                        BYTES(DW_CFA_def_cfa_expression, 5, BREG(SP), 8, DW_OP_deref,
                              DW_OP_plus_uconst, 8, DW_CFA_offset | RA, 1));
    put_function(&made, CALLER, 0x100, NULL, 0);
    put_call(&made, CALLER + 8, FORGETFUL);
    put_call(&made, FRAMED + 0x10, PLAIN);
    put_call(&made, NO_RULE + 0x20, PLAIN);
    put_function(&made, LAST, 0x10, BYTES(DW_CFA_def_cfa_offset, 16));
}

static int set_up(void **state)
{
    (void)state;
    begin_module(&made);
    put_functions();
    end_module(&made);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    made_walk_free(&made);
    return 0;
}

static void test_a_plain_stack(void **state)
{
    (void)state;
    made.words[4] = code_at(PLAIN + 0x10);
    made.words[8] = code_at(PLAIN + 2); /* its room is not there yet: 8 bytes */
    made.words[9] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(PLAIN + 0x20), 1), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN + 0x20), code_at(PLAIN + 0xf),
                 code_at(PLAIN + 1), code_at(FIRST + 7));
    assert_int_equal(made.hints.stack_bytes_used, 10 * 8);
    assert_false(made.hints.needs_more_stack);
    assert_false(made.hints.has_unknown_address);
}

/* The leaf is looked up at its address, all other frames at their calls: the last instruction of a
 * function may be a call, and the address after it belongs to another function. */
static void test_the_first_and_the_last_instruction(void **state)
{
    (void)state;
    made.words[0] = code_at(PLAIN); /* returned to from a call at the end of FIRST */
    assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(PLAIN - 1));
    /* Also at the end of the mapping. */
    made.words[0] = code_at(LAST + 0x10);
    made.words[2] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(LAST + 0xf), code_at(FIRST + 7));
}

/* Return addresses may be signed by pointer authentication: found by a rule, and by the frame
 * pointer. */
static void test_signatures_are_taken_off_return_addresses(void **state)
{
    (void)state;
    static const uint64_t signature = 0x3aull << 56 | 0x15ull << 48;
    made.words[0] = code_at(NO_RULE + 0x20) | signature;
    set_register(&made, FP, word_at(2));
    made.words[2] = word_at(5);
    made.words[3] = code_at(FRAMED + 0x10) | signature;
    made.words[6] = code_at(FIRST + 8) | signature;
    made.signature_mask = 0xffffull << 48;
    assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(NO_RULE + 0x1f),
                 code_at(FRAMED + 0xf), code_at(FIRST + 7));
    made.signature_mask = 0;
    assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(PLAIN));
}

static void test_a_return_address_of_0_ends_the_stack(void **state)
{
    (void)state;
    made.words[0] = 0;
    assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN));
    /* A thread that is at 0 itself has called a null pointer. */
    assert_int_equal(walk_from(&made, 0, 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, 0);
    assert_true(made.hints.has_unknown_address);
}

static void test_a_caller_in_no_code(void **state)
{
    (void)state;
    made.words[0] = 0x1234;
    assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(PLAIN));
    assert_true(made.hints.has_unknown_address);
}

/* The frame pointer at each stage of a function that has one: not yet pushed, pushed, set, and
 * popped again. Its caller needs it. */
static void test_frame_pointers(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset, sp, frame_pointer;
    } rows[] = {{0, 10, 20}, {1, 9, 20}, {4, 9, 9}, {0x10, 3, 9}, {0x20, 10, 20}};
    made.words[9] = word_at(20);
    made.words[10] = code_at(FRAMED + 0x10);
    made.words[20] = word_at(40);
    made.words[21] = code_at(FRAMED + 0x18);
    made.words[40] = 0;
    made.words[41] = code_at(FIRST + 8);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set_register(&made, FP, word_at(rows[i].frame_pointer));
        assert_int_equal(walk_from(&made, code_at(FRAMED + rows[i].offset), rows[i].sp), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(FRAMED + rows[i].offset),
                     code_at(FRAMED + 0xf), code_at(FRAMED + 0x17), code_at(FIRST + 7));
    }
}

/* After it is popped, the row still says where it was saved; that place, now below the stack
 * pointer, may hold anything. */
static void test_a_popped_frame_pointer(void **state)
{
    (void)state;
    made.words[9] = 0xdead; /* by a signal handler, say */
    made.words[10] = code_at(FRAMED + 0x10);
    made.words[21] = code_at(FIRST + 8);
    set_register(&made, FP, word_at(20));
    assert_int_equal(walk_from(&made, code_at(FRAMED + 0x20), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(FRAMED + 0x20), code_at(FRAMED + 0xf),
                 code_at(FIRST + 7));
    /* If it is not known before, it is not known afterwards. */
    forget_register(&made, FP);
    assert_int_equal(walk_from(&made, code_at(FRAMED + 0x20), 10), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_at(FRAMED + 0x20), code_at(FRAMED + 0xf));
}

static void test_a_frame_pointer_that_is_kept_in_a_register(void **state)
{
    (void)state;
    made.words[0] = code_at(FRAMED + 0x10);
    made.words[31] = code_at(FIRST + 8);
    set_register(&made, FP, 7);
    set_register(&made, R5, word_at(30));
    assert_int_equal(walk_from(&made, code_at(SAVER), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(SAVER), code_at(FRAMED + 0xf),
                 code_at(FIRST + 7));
    forget_register(&made, R5);
    assert_int_equal(walk_from(&made, code_at(SAVER), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_at(SAVER), code_at(FRAMED + 0xf));
    assert_int_equal(made.hints.function, code_at(FRAMED)); /* only now it is needed */
}

/* As for a thread that was read while it slept: the caller needs the frame pointer. */
static void test_a_missing_frame_pointer(void **state)
{
    (void)state;
    made.words[3] = code_at(FRAMED + 0x10);
    made.words[21] = code_at(FIRST + 8);
    forget_register(&made, FP);
    assert_int_equal(walk_from(&made, code_at(PLAIN + 4), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_at(PLAIN + 4), code_at(FRAMED + 0xf));
    assert_int_equal(made.hints.function, code_at(FRAMED));
    assert_int_equal(made.hints.function_sp, word_at(4));
    assert_false(made.hints.needs_more_stack);
    /* A function that saved it has it on the stack. */
    made.words[2] = word_at(20);
    set_register(&made, FP, word_at(2));
    made.words[3] = code_at(FRAMED + 0x10);
    assert_int_equal(walk_from(&made, code_at(FRAMED + 4), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(FRAMED + 4), code_at(FRAMED + 0xf),
                 code_at(FIRST + 7));
    assert_int_equal(made.hints.function, 0);
    /* It was lost by a function whose rule says so. */
    made.words[0] = code_at(FRAMED + 0x10);
    assert_int_equal(walk_from(&made, code_at(LOSING), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_at(LOSING), code_at(FRAMED + 0xf));
}

/* The CFA must grow from frame to frame, or the stack is invalid. */
static void test_a_cfa_that_does_not_grow(void **state)
{
    (void)state;
    for (size_t i = 0; i < 100; i++)
        made.words[i] = code_at(STUCK + 5);
    assert_int_equal(walk_from(&made, code_at(STUCK), 50), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(STUCK));
    for (size_t i = 0; i < 100; i++)
        made.words[i] = code_at(BACKWARDS + 5);
    assert_int_equal(walk_from(&made, code_at(BACKWARDS), 50), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(BACKWARDS));
    /* With a frame pointer that points down. */
    set_register(&made, FP, word_at(20));
    assert_int_equal(walk_from(&made, code_at(FRAMED + 4), 30), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(FRAMED + 4));
    /* Beyond the end of the address space. */
    set_register(&made, FP, UINT64_MAX - 7);
    assert_int_equal(walk_from(&made, code_at(FRAMED + 4), 30), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(FRAMED + 4));
}

/* The child of vfork shares the stack and would overwrite the return address, so it is in a
 * register. */
static void test_a_return_address_in_a_register(void **state)
{
    (void)state;
    set_register(&made, R5, code_at(PLAIN + 0x10));
    made.words[8] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(VFORK + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(VFORK + 4), code_at(PLAIN + 0xf),
                 code_at(FIRST + 7));
    /* A caller's register is known if no function that it called has lost it. */
    made.words[0] = code_at(VFORK + 4);
    made.words[4] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(VFORK + 3), code_at(PLAIN + 0xf),
                 code_at(FIRST + 7));
    assert_int_equal(walk_from(&made, code_at(DROPPER), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(DROPPER), code_at(VFORK + 3));
    forget_register(&made, R5);
    assert_int_equal(walk_from(&made, code_at(VFORK + 4), 5), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_at(VFORK + 4));
}

#ifdef __x86_64__

/* At a return instruction the return address is at the stack pointer, whatever the rule says, if
 * the word there is a return address. */
static void test_at_a_return(void **state)
{
    (void)state;
    made.words[9] = code_at(CALLER + 8);
    made.words[10] = code_at(FIRST + 8);
    made.words[12] = code_at(CALLER + 8); /* of another, earlier call */
    made.words[13] = made.words[10];
    assert_int_equal(walk_from(&made, code_at(FORGETFUL + 0x20), 9), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(FORGETFUL + 0x20), code_at(CALLER + 7),
                 code_at(FIRST + 7));
    /* A caller is not at its return: the byte before its return address is the last of its call. */
    made.words[9] = code_at(FORGETFUL + 0x21);
    made.words[10] = code_at(CALLER + 8);
    made.words[13] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(CALLER + 9), 9), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(CALLER + 9), code_at(FORGETFUL + 0x20),
                 code_at(FIRST + 7));
    /* The word there was pushed for a jump: it is not behind a call. */
    made.words[9] = code_at(PLAIN + 8);
    made.words[12] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(PLAIN + 0x40), 9), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN + 0x40), code_at(FIRST + 7));
}

/* At a return instruction all registers are the caller's. */
static void test_registers_at_a_return(void **state)
{
    (void)state;
    set_register(&made, R10, word_at(61));
    made.words[60] = code_at(FIRST + 8);
    made.words[9] = code_at(BY_R10_CALLER);
    assert_int_equal(walk_from(&made, code_at(FORGETFUL + 0x20), 9), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(FORGETFUL + 0x20), code_at(BY_R10_CALLER - 1),
                 code_at(FIRST + 7));
}

#elif defined __aarch64__

/* A leaf has the link register that its caller's call has set; for the caller it is lost. */
static void test_a_leaf(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t leaf = code_at(LEAF + 4 * i), sp = i ? 5 : 9;
        made.signature_mask = 0xffffull << 48;
        set_register(&made, LR, code_at(PLAIN + 0x10) | 0x15ull << 48);
        made.words[12] = code_at(FIRST + 8);
        assert_int_equal(walk_from(&made, leaf, sp), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, leaf, code_at(PLAIN + 0xf), code_at(FIRST + 7));
        made.words[12] = code_at(LEAF + 8);
        assert_int_equal(walk_from(&made, leaf, sp), 0);
        ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, leaf, code_at(PLAIN + 0xf),
                     code_at(LEAF + 7));
        /* As for a thread that was read while it slept. The missing register is not the frame
         * pointer. */
        forget_register(&made, LR);
        assert_int_equal(walk_from(&made, leaf, sp), 0);
        ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, leaf);
        assert_int_equal(made.hints.function, 0);
    }
}

#endif

static void test_code_on_its_way_to_another_frame(void **state)
{
    (void)state;
    made.words[0] = code_at(FIRST + 8);
    set_register(&made, R5, word_at(1));
    assert_int_equal(walk_from(&made, code_at(JUMPER), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(JUMPER));
}

static void test_what_no_rule_can_say(void **state)
{
    (void)state;
    assert_int_equal(walk_from(&made, code_at(COMPLEX), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(COMPLEX));
    made.words[3] = code_at(COMPLEX + 4);
    assert_int_equal(walk_from(&made, code_at(PLAIN + 4), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(PLAIN + 4), code_at(COMPLEX + 3));
}

static void test_max_depth(void **state)
{
    (void)state;
    for (size_t i = 0; i < 30; i++)
        made.words[i] = code_at(PLAIN + 2);
    made.words[30] = code_at(FIRST + 8);
    for (made.max_depth = 1; made.max_depth < 40; made.max_depth++) {
        bool is_cut = made.max_depth < 32;
        assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
        assert_int_equal(made.stack.depth, is_cut ? made.max_depth : 32);
        assert_int_equal(made.stack.cut, is_cut ? STACK_CUT_AT_MAX_DEPTH : STACK_WHOLE);
        assert_int_equal(made.hints.stack_bytes_used,
                         8 * (is_cut ? made.max_depth : 31)); /* no more than needed */
    }
}

static void test_a_stack_that_ends_early(void **state)
{
    (void)state;
    for (size_t i = 0; i < 30; i++)
        made.words[i] = code_at(PLAIN + 2);
    made.words[30] = code_at(FIRST + 8);
    for (size_t bytes = 0; bytes < 31 * 8; bytes++) {
        made.snapshot.stack.bytes = bytes;
        made.snapshot.stack.end_is_known = true;
        made.snapshot.stack.end = MADE_STACK + 4096;
        assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
        assert_int_equal(made.stack.cut, STACK_CUT_UNREADABLE);
        assert_int_equal(made.stack.depth, bytes / 8 + 1);
        assert_int_equal(made.hints.stack_bytes_used, bytes / 8 * 8);
        assert_true(made.hints.needs_more_stack); /* the stack continues */
        made.snapshot.stack.end = MADE_STACK + bytes / 8 * 8;
        assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
        assert_int_equal(made.stack.cut, STACK_CUT_UNREADABLE);
        assert_false(made.hints.needs_more_stack); /* the stack ends there */
        made.snapshot.stack.end_is_known = false;
        assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
        assert_true(made.hints.needs_more_stack);
    }
    made.snapshot.stack.bytes = 31 * 8;
    assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
    assert_int_equal(made.stack.cut, STACK_WHOLE);
}

/* A stack pointer outside the copy, as on a signal stack. */
static void test_another_stack(void **state)
{
    (void)state;
    made.snapshot.stack.address = word_at(100);
    made.snapshot.stack.memory = (unsigned char *)&made.words[100];
    made.snapshot.stack.bytes = 800;
    made.snapshot.stack.end = word_at(200);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(PLAIN));
    assert_false(made.hints.needs_more_stack);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 200), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(PLAIN));
    assert_false(made.hints.needs_more_stack);
}

/* A CFA in a register that callees do not change, as in OpenSSL's aesni_gcm_encrypt. */
static void test_a_cfa_in_a_register(void **state)
{
    (void)state;
    set_register(&made, R10, word_at(61));
    made.words[60] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(BY_R10), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(BY_R10), code_at(FIRST + 7));
    made.words[0] = code_at(BY_R10 + 9);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(BY_R10 + 8), code_at(FIRST + 7));
    forget_register(&made, R10);
    assert_int_equal(walk_from(&made, code_at(BY_R10), 10), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_at(BY_R10));
    assert_int_equal(made.hints.function, 0); /* the missing register is not the frame pointer */
    assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_at(PLAIN), code_at(BY_R10 + 8));
}

static void test_a_cfa_with_an_index(void **state)
{
    (void)state;
    set_register(&made, R9, 5);
    made.words[16] = word_at(60);
    made.words[60] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(INDEXED), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(INDEXED), code_at(FIRST + 7));
    made.words[16] = 0;
    made.words[17] = word_at(60);
    set_register(&made, R9, 6);
    assert_int_equal(walk_from(&made, code_at(INDEXED), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(INDEXED), code_at(FIRST + 7));
    forget_register(&made, R9);
    assert_int_equal(walk_from(&made, code_at(INDEXED), 10), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_at(INDEXED));
}

/* As in OCaml's caml_c_call: the stack that it has left may be at a lower address, and its rule
 * says that its caller is at an exact address. */
static void test_a_caller_on_another_stack(void **state)
{
    (void)state;
    made.words[41] = word_at(2);
    made.words[2] = code_at(PLAIN + 4);
    made.words[6] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(OTHER_STACK), 40), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(OTHER_STACK), code_at(PLAIN + 4),
                 code_at(FIRST + 7));
    /* Nowhere: neither the first frame, nor code. */
    made.words[41] = 0;
    assert_int_equal(walk_from(&made, code_at(OTHER_STACK), 40), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(OTHER_STACK));
    made.words[41] = word_at(2);
    made.words[2] = 0;
    assert_int_equal(walk_from(&made, code_at(OTHER_STACK), 40), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(OTHER_STACK));
    made.words[2] = 0x1234;
    assert_int_equal(walk_from(&made, code_at(OTHER_STACK), 40), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(OTHER_STACK));
    /* In a circle. */
    made.words[2] = code_at(OTHER_STACK);
    made.words[4] = word_at(2);
    assert_int_equal(walk_from(&made, code_at(OTHER_STACK), 40), 0);
    assert_int_equal(made.stack.cut, STACK_CUT_NO_UNWIND_INFO);
    assert_in_range(made.stack.depth, 2, 10);
}

/* As in the dynamic linker while it looks up the called function: a caller's base pointer is known
 * if the functions that it called kept it. */
static void test_a_callers_cfa_by_the_base_pointer(void **state)
{
    (void)state;
    made.words[63] = code_at(FIRST + 8);
    made.words[10] = word_at(60);
    made.words[11] = code_at(BY_BASE + 0x10);
    set_register(&made, BASE, 7);
    assert_int_equal(walk_from(&made, code_at(KEEPER + 4), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(KEEPER + 4), code_at(BY_BASE + 0xf),
                 code_at(FIRST + 7));
    /* It was popped, or not touched. */
    set_register(&made, BASE, word_at(60));
    made.words[10] = 0xdead;
    assert_int_equal(walk_from(&made, code_at(KEEPER + 0x20), 11), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(KEEPER + 0x20), code_at(BY_BASE + 0xf),
                 code_at(FIRST + 7));
    assert_int_equal(walk_from(&made, code_at(PLAIN), 11), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(BY_BASE + 0xf),
                 code_at(FIRST + 7));
    /* A function whose CFA is in this register has saved its caller's. */
    made.words[60] = word_at(70);
    made.words[63] = code_at(BY_BASE + 0x10);
    made.words[73] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 11), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(BY_BASE + 0xf),
                 code_at(BY_BASE + 0xf), code_at(FIRST + 7));
    /* A base pointer that is lost, or not known at the leaf, can't be found. */
    assert_int_equal(walk_from(&made, code_at(DROPPER), 11), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(DROPPER), code_at(BY_BASE + 0xf));
    forget_register(&made, BASE);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 11), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_REGISTER, code_at(PLAIN), code_at(BY_BASE + 0xf));
    set_register(&made, BASE, MADE_STACK - 32);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 11), 0);
    assert_int_equal(made.stack.cut, STACK_CUT_NO_UNWIND_INFO);
}

/* main with vectors on its stack, and a function with an offset to the CFA in memory. */
static void test_a_cfa_in_memory(void **state)
{
    (void)state;
    set_register(&made, FP, word_at(20));
    made.words[19] = word_at(30); /* the CFA */
    made.words[20] = word_at(40); /* the caller's frame pointer */
    made.words[29] = code_at(FRAMED + 0x10);
    made.words[41] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(REALIGNED), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(REALIGNED), code_at(FRAMED + 0xf),
                 code_at(FIRST + 7));
    made.words[6] = word_at(29);
    assert_int_equal(walk_from(&made, code_at(PLUS_8), 4), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(PLUS_8), code_at(FRAMED + 0xf));
    set_register(&made, FP, word_at(40));
    assert_int_equal(walk_from(&made, code_at(PLUS_8), 4), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLUS_8), code_at(FRAMED + 0xf),
                 code_at(FIRST + 7));
    /* The word that holds it is not in the copy. */
    made.snapshot.stack.bytes = 6 * 8;
    assert_int_equal(walk_from(&made, code_at(PLUS_8), 4), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(PLUS_8));
    assert_true(made.hints.needs_more_stack);
}

/* A snapshot always has stack pointer and program counter; without one it is not unwound. */
static void test_without_a_place(void **state)
{
    (void)state;
    static const unsigned numbers[] = {SP, PC};
    made.words[0] = code_at(FIRST + 8);
    for (size_t i = 0; i < 2; i++) {
        struct walk walk = {.tables = &made.tables,
                            .space = &made.space,
                            .snapshot = &made.snapshot,
                            .max_depth = 9,
                            .stack = &made.stack,
                            .hints = &made.hints,
                            .code_mask = UINT64_MAX};
        assert_int_equal(walk_from(&made, code_at(PLAIN), 0), 0);
        assert_int_equal(made.stack.depth, 2);
        made.snapshot.registers.known &= ~(1ull << numbers[i]);
        made.stack.depth = 0;
        assert_int_equal(walk_by_rules(&walk), 0);
        ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(PLAIN));
    }
}

/* Answers that FRAMED can't be read. */
static int look_up(struct lookups *lookups, struct module *module, const struct lookup *lookup,
                   union lookup_answer *ret_answer)
{
    (void)lookups;
    static struct own_lookups own;
    if (lookup->address - MADE_ADDRESS - FRAMED < 0x100)
        return -ENOEXEC;
    own_lookups_init(&own);
    int err = own.lookups.find(&own.lookups, module, lookup, ret_answer);
    own_lookups_free(&own);
    return err;
}

/* The frame pointer would lead to the caller, but is not followed. */
static void test_what_cannot_be_read(void **state)
{
    (void)state;
    struct lookups lookups = {.find = look_up};
    made.words[3] = code_at(FRAMED + 0x15);
    made.words[4] = word_at(6);
    made.words[5] = code_at(FIRST + 8);
    set_register(&made, FP, word_at(4));
    assert_int_equal(walk_from(&made, code_at(PLAIN + 4), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN + 4), code_at(FRAMED + 0x14),
                 code_at(FIRST + 7));
    rule_tables_free(&made.tables);
    made.tables.lookups = &lookups;
    assert_int_equal(walk_from(&made, code_at(PLAIN + 4), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREAD, code_at(PLAIN + 4), code_at(FRAMED + 0x14));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_plain_stack),
        TEST(test_the_first_and_the_last_instruction),
        TEST(test_a_return_address_of_0_ends_the_stack),
        TEST(test_a_caller_in_no_code),
        TEST(test_frame_pointers),
        TEST(test_a_popped_frame_pointer),
        TEST(test_a_frame_pointer_that_is_kept_in_a_register),
        TEST(test_a_missing_frame_pointer),
        TEST(test_a_cfa_that_does_not_grow),
        TEST(test_a_return_address_in_a_register),
#ifdef __x86_64__
        TEST(test_at_a_return),
        TEST(test_registers_at_a_return),
#elif defined __aarch64__
        TEST(test_a_leaf),
#endif
        TEST(test_code_on_its_way_to_another_frame),
        TEST(test_what_no_rule_can_say),
        TEST(test_signatures_are_taken_off_return_addresses),
        TEST(test_max_depth),
        TEST(test_a_stack_that_ends_early),
        TEST(test_another_stack),
        TEST(test_a_cfa_in_a_register),
        TEST(test_a_cfa_with_an_index),
        TEST(test_a_caller_on_another_stack),
        TEST(test_a_callers_cfa_by_the_base_pointer),
        TEST(test_a_cfa_in_memory),
        TEST(test_without_a_place),
        TEST(test_what_cannot_be_read),
    };
    return cmocka_run_group_tests_name("walk_rules", tests, NULL, NULL);
}
