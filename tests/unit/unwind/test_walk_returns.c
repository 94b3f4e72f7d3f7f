/* Code of which only the instructions are known: they show where it returns to. */
#include "unit.h"

#include "make_walk.h"

/* BY_FRAME_POINTER is described, and needs the frame pointer. Calls return to byte 0x10 of the
 * others. */
enum { FIRST = 0x100, BY_FRAME_POINTER = 0x200, BARE = 0x1000, ALIGNED = 0x1100, LAST = 0x1200 };

/* BARE has saved its caller's frame pointer at word BARE_SAVED, and has its return address at word
 * 5. ALIGNED has both elsewhere, where word ALIGNED_KEPT points: a word of its own frame, which
 * begins at word 6, or on AArch64 its frame pointer, which BARE has saved. */
#ifdef __aarch64__

enum { BARE_SAVED = 4, ALIGNED_KEPT = BARE_SAVED };

static const uint32_t bare[] = {
    0xa9427bfd, /* ldp x29, x30, [sp, #32] */
    0x9100c3ff, /* add sp, sp, #48 */
    0xd65f03c0, /* ret */
};
static const uint32_t aligned[] = {
    0x910003bf, /* mov sp, x29 */
    0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
    0xd65f03c0, /* ret */
};
static const uint32_t behind_end[] = {
    0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
    0xd65f03c0, /* ret */
};

#else

enum { BARE_SAVED = 3, ALIGNED_KEPT = 6 + 8 };

/* add $24,%rsp; pop %rbp; pop %rbx; ret */
static const uint8_t bare[] = {0x48, 0x83, 0xc4, 0x18, 0x5d, 0x5b, 0xc3};
/* mov 64(%rsp),%rsp; pop %rbp; ret */
static const uint8_t aligned[] = {0x48, 0x8b, 0x64, 0x24, 0x40, 0x5d, 0xc3};
/* pop %rbx; ret */
static const uint8_t behind_end[] = {0x5b, 0xc3};

#endif

static struct made_walk made;

static int set_up(void **state)
{
    (void)state;
    begin_module(&made);
    put_function(&made, FIRST, 0x80, BYTES(DW_CFA_undefined, RA));
    put_function(&made, BY_FRAME_POINTER, 0x80,
                 BYTES(DW_CFA_def_cfa, FP, 16, DW_CFA_offset | FP, 2));
    put_call(&made, FIRST + 8, BARE);
    put_call(&made, BY_FRAME_POINTER + 0x10, BARE);
    put_call(&made, BARE + 0x10, ALIGNED);
    put_call(&made, ALIGNED + 0x10, BARE);
    put_call(&made, LAST + 0x10, BARE);
    put_code(&made, BARE + 0x10, (const uint8_t *)bare, sizeof bare);
    put_code(&made, ALIGNED + 0x10, (const uint8_t *)aligned, sizeof aligned);
    put_code(&made, LAST + 0x10, made_thread_end, sizeof made_thread_end);
    put_code(&made, LAST + 0x10 + sizeof made_thread_end, (const uint8_t *)behind_end,
             sizeof behind_end);
    end_module(&made);
    made.module.entry_address = MADE_ADDRESS + 0x3000;
    set_register(&made, FP, 7); /* does not point to a frame */
    set_link(&made, 7);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    made_walk_free(&made);
    return 0;
}

static void test_the_leaf_and_its_callers(void **state)
{
    (void)state;
    made.words[5] = code_at(ALIGNED + 0x10);
    made.words[ALIGNED_KEPT] = word_at(30);
    made.words[30] = word_at(50); /* its caller's frame pointer */
    made.words[31] = code_at(BY_FRAME_POINTER + 0x10);
    made.words[50] = 0;
    made.words[51] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(BARE + 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(BARE + 0x10), code_at(ALIGNED + 0xf),
                 code_at(BY_FRAME_POINTER + 0xf), code_at(FIRST + 7));
    /* As a caller. */
    made.words[5] = code_at(FIRST + 8);
    assert_int_equal(walk_from(&made, code_at(BARE + 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(BARE + 0x10), code_at(FIRST + 7));
}

static void test_no_address_after_a_call(void **state)
{
    (void)state;
    made.words[5] = code_at(FIRST + 12);
    made.words[4] = code_at(FIRST + 8); /* left over */
    assert_int_equal(walk_from(&made, code_at(BARE + 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_NO_UNWIND_INFO, code_at(BARE + 0x10));
}

static void test_a_stack_that_is_not_copied(void **state)
{
    (void)state;
    made.snapshot.stack.bytes = 5 * 8;
    assert_int_equal(walk_from(&made, code_at(BARE + 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_CUT_UNREADABLE, code_at(BARE + 0x10));
    assert_true(made.hints.needs_more_stack);
}

/* After the call with which a thread ends comes unrelated code. */
static void test_a_first_frame(void **state)
{
    (void)state;
    made.words[5] = code_at(LAST + 0x10);
    made.words[7] = code_at(FIRST + 8);
    made.words[BARE_SAVED] = 0;
    assert_int_equal(walk_from(&made, code_at(BARE + 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(BARE + 0x10), code_at(LAST + 0xf));
    /* The same holds after the call near a program's entry. */
    made.words[5] = code_at(BARE + 0x10);
    made.words[11] = code_at(FIRST + 8);
    made.module.entry_address = MADE_ADDRESS + BARE;
    assert_int_equal(walk_from(&made, code_at(BARE + 0x10), 0), 0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(BARE + 0x10), code_at(BARE + 0xf));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_leaf_and_its_callers),
        TEST(test_no_address_after_a_call),
        TEST(test_a_stack_that_is_not_copied),
        TEST(test_a_first_frame),
    };
    return cmocka_run_group_tests_name("walk_returns", tests, NULL, NULL);
}
