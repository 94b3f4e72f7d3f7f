/* Signal handlers: the kernel's trampoline, and the code that the signal interrupted. */
#include "unit.h"

#include "make_walk.h"
#include "unwind/signal_frame.h"

#include <signal.h>
#include <ucontext.h>

enum {
    FIRST = 0x100,        /* has no caller */
    PLAIN = 0x200,        /* CFA = sp + 8 */
    BY_R10 = 0x300,       /* has its CFA in r10 */
    FRAMED = 0x400,       /* has a frame pointer */
    LEAF = 0x500,         /* has its return address in the link register */
    WITH_CFI = 0x1004,    /* a trampoline with an entry */
    WITHOUT_CFI = 0x1100, /* one without, as musl's */
    RETURNING = 0x1200,   /* has no entry, but its instructions show where it returns to */
    BEHIND = 0x1300       /* a trampoline without an entry, right behind a function of symbols */
};

static struct made_walk made;

/* Pops a frame record, and returns. */
static const uint8_t returns[] = {
#ifdef __aarch64__
    0xfd, 0x7b, 0xc1, 0xa8, /* ldp x29, x30, [sp], #16 */
    0xc0, 0x03, 0x5f, 0xd6, /* ret */
#else
    0x5d, 0xc3, /* pop %rbp; ret */
#endif
};

static int set_up(void **state)
{
    (void)state;
    begin_module(&made);
    put_function(&made, FIRST, 0x100, BYTES(DW_CFA_undefined, RA));
    put_function(&made, PLAIN, 0x100, NULL, 0);
    put_function(&made, BY_R10, 0x100, BYTES(DW_CFA_def_cfa, R10, 0));
    put_function(&made, FRAMED, 0x100, BYTES(DW_CFA_def_cfa, FP, 16, DW_CFA_offset | FP, 2));
#ifdef __aarch64__
    put_function(&made, LEAF, 0x100, BYTES(DW_CFA_def_cfa_offset, 0, DW_CFA_same_value, LR));
#endif
    put_signal_function(&made, WITH_CFI - MADE_SIGNAL_ENTRY_EARLY,
                        MADE_SIGNAL_ENTRY_EARLY + sizeof made_signal_return, NULL, 0);
    put_call(&made, PLAIN + 0x28, FRAMED);
    put_code(&made, WITH_CFI, made_signal_return, sizeof made_signal_return);
    put_code(&made, WITHOUT_CFI, made_signal_return, sizeof made_signal_return);
    put_code(&made, RETURNING, returns, sizeof returns);
    put_code(&made, BEHIND - sizeof returns, returns, sizeof returns);
    put_code(&made, BEHIND, made_signal_return, sizeof made_signal_return);
    end_module(&made);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    made.module.functions = (struct functions){0};
    made_walk_free(&made);
    return 0;
}

/* When a handler returns, the stack pointer points to this structure, which holds the registers:
 * struct rt_sigframe of arch/x86/include/asm/sigframe.h, after its return address, or of
 * arch/arm64/kernel/signal.c. */
#ifdef __aarch64__
struct signal_frame {
    siginfo_t info;
    ucontext_t context;
};

static size_t place_of(unsigned number)
{
    return number == PC   ? offsetof(struct signal_frame, context.uc_mcontext.pc)
           : number == SP ? offsetof(struct signal_frame, context.uc_mcontext.sp)
                          : offsetof(struct signal_frame, context.uc_mcontext.regs) + 8 * number;
}
#else
static size_t place_of(unsigned number)
{
    static const int names[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    return offsetof(ucontext_t, uc_mcontext.gregs) + 8 * (size_t)names[number];
}
#endif

/* Sets a register of the interrupted code. */
static void set_interrupted(uint64_t word, unsigned number, uint64_t value)
{
    made.words[word + 1 + place_of(number) / 8] = value;
}

/* Puts the handler's return address at `word`, followed by the signal frame that the kernel
 * writes. */
static void put_signal_frame(uint64_t word, uint64_t trampoline, uint64_t pc, uint64_t sp)
{
    for (unsigned i = 0; i < architecture.register_count; i++)
        set_interrupted(word, i, 0x1111);
    set_interrupted(word, PC, pc);
    set_interrupted(word, SP, sp);
    set_interrupted(word, FP, word_at(500));
    set_interrupted(word, R10, word_at(601));
    made.words[word] = trampoline;
}

static void test_where_the_registers_are(void **state)
{
    (void)state;
    for (unsigned i = 0; i < architecture.register_count; i++)
        assert_int_equal(signal_frame_offsets[i], place_of(i));
}

static void check_trampoline(uint64_t trampoline)
{
    put_signal_frame(10, trampoline, code_at(PLAIN), word_at(200));
    made.words[200] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(PLAIN + 7), 10), 0);
    /* The trampoline was not called, and the interrupted code did not make a call: both are at
     * their exact addresses. */
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN + 7), trampoline, code_at(PLAIN),
                 code_at(FIRST + 7));
}

static void test_a_trampoline_with_cfi(void **state)
{
    (void)state;
    check_trampoline(code_at(WITH_CFI));
}

static void test_a_trampoline_without_cfi(void **state)
{
    (void)state;
    check_trampoline(code_at(WITHOUT_CFI));
}

/* The byte before it is part of a return instruction, whose rule is known from the function. */
static void test_a_trampoline_behind_a_function(void **state)
{
    (void)state;
    static struct function_range function = {MADE_ADDRESS + BEHIND - sizeof returns,
                                             MADE_ADDRESS + BEHIND};
    made.module.functions = (struct functions){.items = &function, .count = 1, .were_read = true};
    check_trampoline(code_at(BEHIND));
}

#ifndef __aarch64__ /* where a caller's return instruction needs a register that is not known */

/* A return address that follows no call is looked up as a trampoline, too. However many rules are
 * known by then, the one that is in use stays. */
static void test_no_trampoline_behind_a_function(void **state)
{
    (void)state;
    static struct function_range function = {MADE_ADDRESS + RETURNING,
                                             MADE_ADDRESS + RETURNING + sizeof returns};
    made.module.functions = (struct functions){.items = &function, .count = 1, .were_read = true};
    made.words[10] = code_at(RETURNING + sizeof returns);
    made.words[11] = code_at(PLAIN + 0x28);
    for (unsigned known = 0; known < 100; known++) {
        rule_tables_free(&made.tables);
        for (unsigned i = 0; i < known; i++)
            assert_non_null(
                rule_tables_find(&made.tables, &made.module, MADE_ADDRESS + 0x2000 + i));
        assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
        assert_in_range(made.stack.depth, 3, 10);
        assert_int_equal(made.stack.addresses[1], code_at(RETURNING + sizeof returns - 1));
        assert_int_equal(made.stack.addresses[2], code_at(PLAIN + 0x27));
    }
}

#endif

/* A handler in code of which only the instructions are known, or only that it has a frame pointer.
 * In the latter case it is not known on AArch64 where its frame ends and the kernel's begins. */
static void test_a_handler_without_cfi(void **state)
{
    (void)state;
    static const uint64_t trampolines[] = {WITH_CFI, WITHOUT_CFI};
    for (size_t i = 0; i < 2; i++) {
        const uint64_t trampoline = code_at(trampolines[i]);
        made.words[10] = word_at(300);
        put_signal_frame(11, trampoline, code_at(PLAIN + 1), word_at(200));
        made.words[200] = code_at(FIRST + 8);
        assert_int_equal(walk_from(&made, code_at(RETURNING), 10), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(RETURNING), trampoline, code_at(PLAIN + 1),
                     code_at(FIRST + 7));
        set_register(&made, FP, word_at(10));
        set_link(&made, trampoline);
        assert_int_equal(walk_from(&made, code_at(0x3000), 5), 0);
#ifdef __aarch64__
        ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(0x3000), trampoline);
#else
        ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(0x3000), trampoline, code_at(PLAIN + 1),
                     code_at(FIRST + 7));
#endif
    }
}

/* A thread can be seen at the two instructions of its trampoline, right after the handler. */
static void test_at_the_trampoline(void **state)
{
    (void)state;
    static const uint64_t trampolines[] = {WITH_CFI, WITHOUT_CFI, WITH_CFI + MADE_SIGNAL_CALL,
                                           WITHOUT_CFI + MADE_SIGNAL_CALL};
    for (size_t i = 0; i < 4; i++) {
        put_signal_frame(10, 0, code_at(PLAIN + 1), word_at(200));
        made.words[200] = code_at(FIRST + 8);
        assert_int_equal(walk_from(&made, code_at(trampolines[i]), 11), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(trampolines[i]), code_at(PLAIN + 1),
                     code_at(FIRST + 7));
    }
}

/* All registers of the interrupted code are known, even if the thread itself was asleep. */
static void test_registers_of_what_was_interrupted(void **state)
{
    (void)state;
    forget_register(&made, FP);
    forget_register(&made, R10);
    put_signal_frame(10, code_at(WITH_CFI), code_at(BY_R10 + 3), word_at(200));
    made.words[600] = code_at(FRAMED + 9); /* at the CFA - 8 */
    made.words[500] = 0;
    made.words[501] = code_at(FIRST + 8);
    /* The CFA is above the frame to which the frame pointer points, so that is not the caller's. */
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(PLAIN), code_at(WITH_CFI),
                 code_at(BY_R10 + 3), code_at(FRAMED + 8));
    /* And with a frame that is above the CFA. */
    set_interrupted(10, FP, word_at(700));
    made.words[701] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(WITH_CFI), code_at(BY_R10 + 3),
                 code_at(FRAMED + 8), code_at(FIRST + 7));
}

static void test_a_handler_that_was_interrupted(void **state)
{
    (void)state;
    put_signal_frame(10, code_at(WITH_CFI), code_at(PLAIN + 9), word_at(200));
    put_signal_frame(200, code_at(WITHOUT_CFI), code_at(PLAIN + 20), word_at(300));
    made.words[300] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(WITH_CFI), code_at(PLAIN + 9),
                 code_at(WITHOUT_CFI), code_at(PLAIN + 20), code_at(FIRST + 7));
}

/* A null pointer was called: the frame at 0 is shown. */
static void test_what_was_interrupted_in_no_code(void **state)
{
    (void)state;
    put_signal_frame(10, code_at(WITH_CFI), 0, word_at(200));
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(PLAIN), code_at(WITH_CFI), 0);
    assert_true(made.hints.has_unknown_address);
    /* It was really called. */
#ifdef __aarch64__
    set_interrupted(10, LR, code_at(PLAIN + 0x28));
    made.words[200] = code_at(FIRST + 8);
#else
    made.words[200] = code_at(PLAIN + 0x28);
    made.words[201] = code_at(FIRST + 8);
#endif
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(WITH_CFI), 0,
                 code_at(PLAIN + 0x27), code_at(FIRST + 7));
}

static void test_a_signal_frame_that_was_not_copied(void **state)
{
    (void)state;
    size_t bytes = 0;
    for (unsigned i = 0; i < architecture.register_count; i++)
        bytes = place_of(i) + 8 > bytes ? place_of(i) + 8 : bytes;
    put_signal_frame(10, code_at(WITH_CFI), code_at(PLAIN), word_at(200));
    for (size_t words = 11; words < 11 + bytes / 8; words++) {
        made.snapshot.stack.bytes = words * 8;
        assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
        ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(PLAIN), code_at(WITH_CFI));
        assert_true(made.hints.needs_more_stack);
    }
    /* If a handler runs on a stack of its own, the rest is elsewhere. */
    made.snapshot.stack.bytes = made.snapshot.stack.end - MADE_STACK;
    put_signal_frame(10, code_at(WITH_CFI), code_at(PLAIN), 0x7ff000000000);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(PLAIN), code_at(WITH_CFI),
                 code_at(PLAIN));
    assert_false(made.hints.needs_more_stack);
    assert_int_equal(made.hints.missing_address, 0x7ff000000000);
}

static void test_a_handler_on_a_stack_of_its_own(void **state)
{
    (void)state;
    uint64_t left[] = {code_at(PLAIN + 30), code_at(FIRST + 8)};
    made.snapshot.other_stack = (struct stack_copy){
        .address = 0x7ff000000000, .memory = (unsigned char *)left, .bytes = sizeof left};
    put_signal_frame(10, code_at(WITH_CFI), code_at(PLAIN + 20), 0x7ff000000000);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(WITH_CFI), code_at(PLAIN + 20),
                 code_at(PLAIN + 29), code_at(FIRST + 7));
    assert_true(made.hints.used_other_stack);
    /* Too little of it was copied. */
    made.snapshot.other_stack.bytes = 8;
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(PLAIN), code_at(WITH_CFI),
                 code_at(PLAIN + 20), code_at(PLAIN + 29));
    assert_int_equal(made.hints.missing_address, 0x7ff000000008);
    made.snapshot.other_stack = (struct stack_copy){0};
}

#ifdef __aarch64__

/* A leaf returns through the link register, in which the address may be signed. */
static void test_the_link_register_of_what_was_interrupted(void **state)
{
    (void)state;
    static const uint64_t signature = 0x3aull << 56 | 0x15ull << 48;
    made.signature_mask = 0xffffull << 48;
    put_signal_frame(10, code_at(WITH_CFI), code_at(LEAF + 4), word_at(200));
    set_interrupted(10, LR, code_at(PLAIN + 0x28) | signature);
    made.words[200] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(WITH_CFI), code_at(LEAF + 4),
                 code_at(PLAIN + 0x27), code_at(FIRST + 7));
}

#endif

/* A damaged signal frame leads to itself: only the maximum depth ends the stack. */
static void test_a_signal_frame_that_leads_to_itself(void **state)
{
    (void)state;
    put_signal_frame(10, code_at(WITH_CFI), code_at(WITH_CFI), word_at(11));
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    assert_int_equal(made.stack.cut, STACK_CUT_AT_MAX_DEPTH);
    assert_int_equal(made.stack.depth, made.max_depth);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_where_the_registers_are),
        TEST(test_a_trampoline_with_cfi),
        TEST(test_a_trampoline_without_cfi),
        TEST(test_a_trampoline_behind_a_function),
#ifndef __aarch64__
        TEST(test_no_trampoline_behind_a_function),
#endif
        TEST(test_a_handler_without_cfi),
        TEST(test_at_the_trampoline),
        TEST(test_registers_of_what_was_interrupted),
        TEST(test_a_handler_that_was_interrupted),
        TEST(test_what_was_interrupted_in_no_code),
        TEST(test_a_signal_frame_that_was_not_copied),
        TEST(test_a_handler_on_a_stack_of_its_own),
#ifdef __aarch64__
        TEST(test_the_link_register_of_what_was_interrupted),
#endif
        TEST(test_a_signal_frame_that_leads_to_itself),
    };
    return cmocka_run_group_tests_name("walk_signals", tests, NULL, NULL);
}
