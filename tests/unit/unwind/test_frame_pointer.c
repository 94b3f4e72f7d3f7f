/* Finding the frame pointer of a thread that was read asleep. */
#include "unit.h"

#ifdef __x86_64__

#include "make_walk.h"
#include "unwind/frame_pointer.h"

/* NEEDING has its CFA at rbp + 16; it pushes two registers and makes room for 32 bytes, so that rbp
 * is 48 bytes above rsp. Its room in UNREADABLE is made in a way that is not understood. */
enum {
    FIRST = 0x100,
    NEEDING = 0x200,
    UNREADABLE = 0x300,
    OTHER = 0x400,
    STUB = 0x500,
    PLAIN = 0x600, /* calls at several bytes; CFA = rsp + 8 */
    /* what calls in PLAIN return to */
    OF_NEEDING = PLAIN + 0x10,
    OF_UNREADABLE = PLAIN + 0x20,
    OF_OTHER = PLAIN + 0x30,
    OF_STUB = PLAIN + 0x40,
    INDIRECT = PLAIN + 0x50,
    NO_CALL = PLAIN + 0x60,
    /* Its room is not understood either, but it returns by add $24,%rsp; pop %rbx; pop %rbp; ret.
     */
    RETURNING = 0x700,
};

static struct made_walk made;
static struct unwinder *unwinder;

static int set_up(void **state)
{
    (void)state;
    static const uint8_t entry[] = {0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, /* push %r12 */
                                    0x53, 0x48, 0x83, 0xec, 0x20};
    static const uint8_t unreadable[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xc4};
    static const uint8_t stub[] = {0xff, 0x25, 0, 1, 0, 0};
    static const uint8_t indirect[] = {0xff, 0xd0};
    static const uint8_t returns[] = {0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3};
    begin_module(&made);
    put_function(&made, FIRST, 0x80, BYTES(DW_CFA_undefined, RIP));
    put_function(&made, NEEDING, 0x80, BYTES(DW_CFA_def_cfa, RBP, 16, DW_CFA_offset | RBP, 2));
    put_function(&made, UNREADABLE, 0x80, BYTES(DW_CFA_def_cfa, RBP, 16, DW_CFA_offset | RBP, 2));
    put_function(&made, PLAIN, 0x80, NULL, 0);
    put_function(&made, RETURNING, 0x80, BYTES(DW_CFA_def_cfa, RBP, 16, DW_CFA_offset | RBP, 2));
    put_code(&made, RETURNING, unreadable, sizeof unreadable);
    put_code(&made, RETURNING + 0x48, returns, sizeof returns);
    put_code(&made, NEEDING, entry, sizeof entry);
    put_code(&made, UNREADABLE, unreadable, sizeof unreadable);
    put_code(&made, STUB, stub, sizeof stub);
    put_code(&made, INDIRECT - 2, indirect, sizeof indirect);
    put_call(&made, OF_NEEDING, NEEDING);
    put_call(&made, OF_UNREADABLE, UNREADABLE);
    put_call(&made, OF_OTHER, OTHER);
    put_call(&made, OF_STUB, STUB);
    put_code(&made, 0x3000, (const uint8_t[]){0xf4}, 1);
    end_module(&made);
    forget_register(&made, RBP);
    return unwinder_new(NULL, &unwinder);
}

static int tear_down(void **state)
{
    (void)state;
    unwinder_free(unwinder);
    made_walk_free(&made);
    return 0;
}

/* A frame of the function: the saved frame pointer, and a caller whose own caller is the first. */
static void put_frame(uint64_t word, uint64_t return_offset)
{
    made.words[word] = 0;
    made.words[word + 1] = code_at(return_offset);
    made.words[word + 2] = code_at(FIRST + 5);
}

/* Whether the frame pointer of a thread in `function`, with its stack pointer at word 0, is found;
 * then it is set to this word. */
static bool is_found_with(uint64_t function, uint64_t word, uint64_t expected)
{
    struct unwind_hints hints;
    set_register(&made, RIP, code_at(function + 0x40));
    set_register(&made, RSP, word_at(0));
    forget_register(&made, RBP);
    assert_int_equal(
        unwind_snapshot(unwinder, &made.space, &made.snapshot, made.max_depth, &made.stack, &hints),
        0);
    assert_int_equal(made.stack.cut, STACK_CUT_NO_REGISTER);
    assert_int_equal(hints.function, code_at(function));
    assert_int_equal(hints.function_sp, word_at(0));
    bool found = frame_pointer_find(unwinder, &made.space, &made.snapshot, made.max_depth, &hints,
                                    expected, &made.stack);
    assert_int_equal(found, registers_has(&made.snapshot.registers, RBP));
    if (found)
        assert_int_equal(made.snapshot.registers.values[RBP], word_at(word));
    return found;
}

static bool is_found(uint64_t function, uint64_t word)
{
    return is_found_with(function, word, 0);
}

/* Where it was at the same place in another thread: believed as anything else that is tried. */
static void test_by_another_thread(void **state)
{
    (void)state;
    put_frame(33, INDIRECT);
    assert_false(is_found(UNREADABLE, 33));
    assert_true(is_found_with(UNREADABLE, 33, word_at(33)));
    assert_false(is_found_with(UNREADABLE, 33, word_at(34)));
    assert_false(is_found_with(UNREADABLE, 33, word_at(33) + 1));
    assert_false(is_found_with(UNREADABLE, 33, UINT64_MAX));
    put_frame(33, NO_CALL);
    assert_false(is_found_with(UNREADABLE, 33, word_at(33)));
    /* What is wrong hides nothing that is found without it. */
    put_frame(33, OF_UNREADABLE);
    assert_true(is_found_with(UNREADABLE, 33, word_at(6)));
}

static void test_by_the_first_instructions(void **state)
{
    (void)state;
    struct unwind_hints hints;
    put_frame(6, OF_NEEDING);
    assert_true(is_found(NEEDING, 6));
    assert_int_equal(
        unwind_snapshot(unwinder, &made.space, &made.snapshot, made.max_depth, &made.stack, &hints),
        0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(NEEDING + 0x40), code_at(OF_NEEDING - 1),
                 code_at(FIRST + 4));
}

/* Any call may have led there: of a function that jumped to this one at its end. */
static void test_by_the_returns(void **state)
{
    (void)state;
    put_frame(4, OF_OTHER);
    assert_true(is_found(RETURNING, 4));
    put_frame(4, INDIRECT);
    assert_true(is_found(RETURNING, 4));
    put_frame(4, NO_CALL);
    assert_false(is_found(RETURNING, 4));
    /* The stack must lead to its first frame. */
    put_frame(4, OF_OTHER);
    made.words[6] = 0x1234;
    assert_false(is_found(RETURNING, 4));
}

/* A call that may be the function's: through a register, or an entry of the PLT. */
static void test_calls_that_may_be_of_the_function(void **state)
{
    (void)state;
    put_frame(6, INDIRECT);
    assert_true(is_found(NEEDING, 6));
    put_frame(6, OF_STUB);
    assert_true(is_found(NEEDING, 6));
    put_frame(6, OF_OTHER);
    assert_false(is_found(NEEDING, 6));
    put_frame(6, NO_CALL);
    assert_false(is_found(NEEDING, 6));
    put_frame(6, MADE_CODE_BYTES + 0x20); /* no code */
    assert_false(is_found(NEEDING, 6));
}

/* Where the first instructions lead to what can't be, and where they say nothing: the only place
 * that certainly is a call of the function. */
static void test_by_the_call(void **state)
{
    (void)state;
    put_frame(21, OF_NEEDING);
    put_frame(6, OF_OTHER);
    assert_true(is_found(NEEDING, 21));
    memset(made.words, 0, sizeof made.words);
    put_frame(33, OF_UNREADABLE);
    assert_true(is_found(UNREADABLE, 33));
    /* What might be one is not enough. */
    put_frame(33, INDIRECT);
    assert_false(is_found(UNREADABLE, 33));
    put_frame(33, OF_STUB);
    assert_false(is_found(UNREADABLE, 33));
    put_frame(33, OF_NEEDING);
    assert_false(is_found(UNREADABLE, 33));
}

static void test_two_places_are_none(void **state)
{
    (void)state;
    put_frame(33, OF_UNREADABLE);
    put_frame(55, OF_UNREADABLE);
    assert_false(is_found(UNREADABLE, 0));
    /* But one from which the stack leads nowhere is none: a value left over. */
    made.words[57] = 0x1234;
    assert_true(is_found(UNREADABLE, 33));
}

/* The stack must lead to its first frame. */
static void test_what_leads_nowhere_is_not_believed(void **state)
{
    (void)state;
    put_frame(6, OF_NEEDING);
    made.words[8] = 0x1234;
    assert_false(is_found(NEEDING, 6));
    /* Code without information, a frame pointer of 0, and nothing but hlt: the first frame. */
    made.words[8] = code_at(0x3000);
    assert_true(is_found(NEEDING, 6));
    made.words[6] = 3;
    assert_false(is_found(NEEDING, 6));
}

static void test_as_far_as_was_asked_for_or_copied(void **state)
{
    (void)state;
    put_frame(6, OF_NEEDING);
    for (size_t i = 8; i < 40; i++)
        made.words[i] = code_at(PLAIN + 2);
    made.words[40] = 0x1234;
    assert_false(is_found(NEEDING, 6));
    made.max_depth = 20;
    assert_true(is_found(NEEDING, 6));
    made.max_depth = 100;
    made.snapshot.stack.bytes = 30 * 8;
    assert_true(is_found(NEEDING, 6));
    made.snapshot.stack.end = word_at(30); /* there is no more */
    assert_false(is_found(NEEDING, 6));
    /* The frame itself is not in the copy. */
    made.snapshot.stack.end = word_at(100);
    for (size_t bytes = 0; bytes < 8 * 8; bytes++) {
        made.snapshot.stack.bytes = bytes;
        assert_false(is_found(NEEDING, 6));
    }
}

static void test_how_far_it_is_looked_for(void **state)
{
    (void)state;
    put_frame(4000, OF_UNREADABLE);
    assert_true(is_found(UNREADABLE, 4000));
    put_frame(4000, NO_CALL);
    put_frame(5000, OF_UNREADABLE);
    assert_false(is_found(UNREADABLE, 5000));
}

static void test_no_function_no_frame_pointer(void **state)
{
    (void)state;
    const struct unwind_hints hints = {.function_sp = word_at(0)};
    put_frame(6, OF_NEEDING);
    set_register(&made, RIP, code_at(NEEDING + 0x40));
    set_register(&made, RSP, word_at(0));
    assert_false(frame_pointer_find(unwinder, &made.space, &made.snapshot, made.max_depth, &hints,
                                    0, &made.stack));
    assert_false(registers_has(&made.snapshot.registers, RBP));
}

/* A function that is no code of a file, and a stack pointer at the end of all addresses. */
static void test_hints_that_lead_nowhere(void **state)
{
    (void)state;
    static const struct unwind_hints hints[] = {
        {.function = 0x1234, .function_address = 0x1240, .function_sp = MADE_STACK},
        {.function = UINT64_MAX, .function_address = UINT64_MAX, .function_sp = UINT64_MAX - 7},
        {.function = MADE_JIT, .function_address = MADE_JIT + 8, .function_sp = 0},
    };
    set_register(&made, RIP, code_at(NEEDING + 0x40));
    set_register(&made, RSP, word_at(0));
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        assert_false(frame_pointer_find(unwinder, &made.space, &made.snapshot, made.max_depth,
                                        &hints[i], 0, &made.stack));
        assert_false(registers_has(&made.snapshot.registers, RBP));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_by_another_thread),
        TEST(test_by_the_first_instructions),
        TEST(test_by_the_returns),
        TEST(test_calls_that_may_be_of_the_function),
        TEST(test_by_the_call),
        TEST(test_two_places_are_none),
        TEST(test_what_leads_nowhere_is_not_believed),
        TEST(test_as_far_as_was_asked_for_or_copied),
        TEST(test_how_far_it_is_looked_for),
        TEST(test_no_function_no_frame_pointer),
        TEST(test_hints_that_lead_nowhere),
    };
    return cmocka_run_group_tests_name("frame_pointer", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif
