/* Signal handlers: the kernel's trampoline, and what the signal interrupted. */
#include "unit.h"

#ifdef __x86_64__

#include "make_walk.h"

#include <ucontext.h>

enum {
    FIRST = 0x100,       /* nobody called it */
    PLAIN = 0x200,       /* CFA = rsp + 8 */
    BY_R10 = 0x300,      /* has its CFA in r10 */
    FRAMED = 0x400,      /* has a frame pointer */
    WITH_CFI = 0x1001,   /* a trampoline as glibc's: its entry begins one byte before */
    WITHOUT_CFI = 0x1100 /* one as musl's */
};

static struct made_walk made;

static int set_up(void **state)
{
    (void)state;
    static const uint8_t signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    begin_module(&made);
    put_function(&made, FIRST, 0x100, BYTES(DW_CFA_undefined, RIP));
    put_function(&made, PLAIN, 0x100, NULL, 0);
    put_function(&made, BY_R10, 0x100, BYTES(DW_CFA_def_cfa, R10, 0));
    put_function(&made, FRAMED, 0x100, BYTES(DW_CFA_def_cfa, RBP, 16, DW_CFA_offset | RBP, 2));
    put_signal_function(&made, WITH_CFI - 1, 10, NULL, 0);
    put_call(&made, PLAIN + 0x28, FRAMED);
    put_code(&made, WITH_CFI, signal_return, sizeof signal_return);
    put_code(&made, WITHOUT_CFI, signal_return, sizeof signal_return);
    end_module(&made);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    made_walk_free(&made);
    return 0;
}

/* Puts what the kernel leaves for a handler on the stack: the address that the handler returns to
 * at `word`, and behind it a ucontext. */
static void put_signal_frame(uint64_t word, uint64_t trampoline, uint64_t pc, uint64_t sp)
{
    ucontext_t context = {0};
    greg_t *registers = context.uc_mcontext.gregs;
    for (unsigned i = 0; i < NGREG; i++)
        registers[i] = 0x1111;
    registers[REG_RIP] = (greg_t)pc;
    registers[REG_RSP] = (greg_t)sp;
    registers[REG_RBP] = (greg_t)word_at(500);
    registers[REG_R10] = (greg_t)word_at(601);
    made.words[word] = trampoline;
    memcpy(&made.words[word + 1], &context, offsetof(ucontext_t, uc_sigmask));
}

static void check_trampoline(uint64_t trampoline)
{
    put_signal_frame(10, trampoline, code_at(PLAIN), word_at(200));
    made.words[200] = code_at(FIRST + 5);
    assert_int_equal(walk_from(&made, code_at(PLAIN + 7), 10), 0);
    /* The trampoline was not called, nor did what the signal interrupted call: both are exactly
     * where they are. */
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN + 7), trampoline, code_at(PLAIN),
                 code_at(FIRST + 4));
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

/* A handler in code of which nothing is known but that it has a frame pointer. */
static void test_a_handler_without_cfi(void **state)
{
    (void)state;
    static const uint64_t trampolines[] = {WITH_CFI, WITHOUT_CFI};
    for (size_t i = 0; i < 2; i++) {
        made.words[10] = word_at(300);
        put_signal_frame(11, code_at(trampolines[i]), code_at(PLAIN + 1), word_at(200));
        made.words[200] = code_at(FIRST + 5);
        set_register(&made, RBP, word_at(10));
        assert_int_equal(walk_from(&made, code_at(0x3000), 5), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(0x3000), code_at(trampolines[i]),
                     code_at(PLAIN + 1), code_at(FIRST + 4));
    }
}

/* A thread can be seen at its trampoline's two instructions, the handler just done. */
static void test_at_the_trampoline(void **state)
{
    (void)state;
    static const uint64_t trampolines[] = {WITH_CFI, WITHOUT_CFI, WITH_CFI + 7, WITHOUT_CFI + 7};
    for (size_t i = 0; i < 4; i++) {
        put_signal_frame(10, 0, code_at(PLAIN + 1), word_at(200));
        made.words[200] = code_at(FIRST + 5);
        assert_int_equal(walk_from(&made, code_at(trampolines[i]), 11), 0);
        ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(trampolines[i]), code_at(PLAIN + 1),
                     code_at(FIRST + 4));
    }
}

/* All registers are known of what was interrupted, also where the thread itself was asleep. */
static void test_registers_of_what_was_interrupted(void **state)
{
    (void)state;
    forget_register(&made, RBP);
    forget_register(&made, R10);
    put_signal_frame(10, code_at(WITH_CFI), code_at(BY_R10 + 3), word_at(200));
    made.words[600] = code_at(FRAMED + 9); /* at the CFA - 8 */
    made.words[500] = 0;
    made.words[501] = code_at(FIRST + 5);
    /* The CFA lies above where the frame pointer points: no frame of the caller's. */
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(PLAIN), code_at(WITH_CFI),
                 code_at(BY_R10 + 3), code_at(FRAMED + 8));
    /* And with one that lies above it. */
    uint64_t rbp = word_at(700);
    memcpy((char *)&made.words[11] + offsetof(ucontext_t, uc_mcontext.gregs[REG_RBP]), &rbp, 8);
    made.words[701] = code_at(FIRST + 5);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(WITH_CFI), code_at(BY_R10 + 3),
                 code_at(FRAMED + 8), code_at(FIRST + 4));
}

static void test_a_handler_that_was_interrupted(void **state)
{
    (void)state;
    put_signal_frame(10, code_at(WITH_CFI), code_at(PLAIN + 9), word_at(200));
    put_signal_frame(200, code_at(WITHOUT_CFI), code_at(PLAIN + 20), word_at(300));
    made.words[300] = code_at(FIRST + 5);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(WITH_CFI), code_at(PLAIN + 9),
                 code_at(WITHOUT_CFI), code_at(PLAIN + 20), code_at(FIRST + 4));
}

/* A null pointer was called: the frame is at 0, and is one. */
static void test_what_was_interrupted_in_no_code(void **state)
{
    (void)state;
    put_signal_frame(10, code_at(WITH_CFI), 0, word_at(200));
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(PLAIN), code_at(WITH_CFI), 0);
    assert_true(made.hints.has_unknown_address);
    /* It was called indeed. */
    made.words[200] = code_at(PLAIN + 0x28);
    made.words[201] = code_at(FIRST + 5);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(WITH_CFI), 0,
                 code_at(PLAIN + 0x27), code_at(FIRST + 4));
}

static void test_a_signal_frame_that_was_not_copied(void **state)
{
    (void)state;
    put_signal_frame(10, code_at(WITH_CFI), code_at(PLAIN), word_at(200));
    for (size_t words = 11; words < 11 + 22; words++) {
        made.snapshot.stack.bytes = words * 8;
        assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
        ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(PLAIN), code_at(WITH_CFI));
        assert_true(made.hints.needs_more_stack);
    }
    /* Of a handler that runs on a stack of its own, the rest lies elsewhere. */
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
    uint64_t left[] = {code_at(PLAIN + 30), code_at(FIRST + 5)};
    made.snapshot.other_stack = (struct stack_copy){
        .address = 0x7ff000000000, .memory = (unsigned char *)left, .bytes = sizeof left};
    put_signal_frame(10, code_at(WITH_CFI), code_at(PLAIN + 20), 0x7ff000000000);
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(PLAIN), code_at(WITH_CFI), code_at(PLAIN + 20),
                 code_at(PLAIN + 29), code_at(FIRST + 4));
    assert_true(made.hints.used_other_stack);
    /* Too little of it. */
    made.snapshot.other_stack.bytes = 8;
    assert_int_equal(walk_from(&made, code_at(PLAIN), 10), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(PLAIN), code_at(WITH_CFI),
                 code_at(PLAIN + 20), code_at(PLAIN + 29));
    assert_int_equal(made.hints.missing_address, 0x7ff000000008);
    made.snapshot.other_stack = (struct stack_copy){0};
}

/* A damaged one that leads to itself: only the depth ends it. */
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
        TEST(test_a_trampoline_with_cfi),
        TEST(test_a_trampoline_without_cfi),
        TEST(test_a_handler_without_cfi),
        TEST(test_at_the_trampoline),
        TEST(test_registers_of_what_was_interrupted),
        TEST(test_a_handler_that_was_interrupted),
        TEST(test_what_was_interrupted_in_no_code),
        TEST(test_a_signal_frame_that_was_not_copied),
        TEST(test_a_handler_on_a_stack_of_its_own),
        TEST(test_a_signal_frame_that_leads_to_itself),
    };
    return cmocka_run_group_tests_name("walk_signals", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif
