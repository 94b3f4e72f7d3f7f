/* Finding the frame pointer of a thread that was read asleep. */
#include "unit.h"

#include "make_walk.h"
#include "unwind/frame_pointer.h"

/* NEEDING has its CFA 16 above the frame pointer; it saves two registers and allocates 32 bytes, so
 * that the frame pointer is 48 bytes above the stack pointer. UNREADABLE allocates its frame with
 * an instruction that is not understood. */
enum {
    FIRST = 0x100,
    NEEDING = 0x200,
    UNREADABLE = 0x300,
    OTHER = 0x400,
    STUB = 0x500,
    PLAIN = 0x600, /* calls at several bytes; CFA = sp + 8 */
    /* return addresses of calls in PLAIN */
    OF_NEEDING = PLAIN + 0x10,
    OF_UNREADABLE = PLAIN + 0x20,
    OF_OTHER = PLAIN + 0x30,
    OF_STUB = PLAIN + 0x40,
    INDIRECT = PLAIN + 0x50,
    NO_CALL = PLAIN + 0x60,
    /* Its allocation is not understood either, but its return is. */
    RETURNING = 0x700,
    END = 0x3000, /* without information; a thread ends there */
};

#ifdef __aarch64__

static const uint32_t unreadable[] = {
    0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
    0x910003fd, /* mov x29, sp */
    0xcb2063ff, /* sub sp, sp, x0 */
};
static const uint32_t returns[] = {
    0xf9400bf3, /* ldr x19, [sp, #16] */
    0xa9427bfd, /* ldp x29, x30, [sp, #32] */
    0x9100c3ff, /* add sp, sp, #48 */
    0xd65f03c0, /* ret */
};
static const uint32_t stub[] = {
    0x90000010, /* adrp x16, 0 */
    0xf9400211, /* ldr x17, [x16] */
    0x91000210, /* add x16, x16, #0 */
    0xd61f0220, /* br x17 */
};
static const uint32_t indirect[] = {0xd63f0020}; /* blr x1 */

#else

/* push %rbp; mov %rsp,%rbp; sub %rax,%rsp */
static const uint8_t unreadable[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xc4};
/* add $24,%rsp; pop %rbx; pop %rbp; ret */
static const uint8_t returns[] = {0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3};
/* jmp *256(%rip) */
static const uint8_t stub[] = {0xff, 0x25, 0, 1, 0, 0};
/* call *%rax */
static const uint8_t indirect[] = {0xff, 0xd0};
/* push %rbp; mov %rsp,%rbp; push %r12; push %rbx; sub $32,%rsp */
static const uint8_t entry[] = {0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x53, 0x48, 0x83, 0xec, 0x20};

#endif

static uint64_t code_mask;

/* The code is at higher addresses than any process has in an emulator. */
uint64_t __wrap_registers_code_mask(void);

uint64_t __wrap_registers_code_mask(void)
{
    return code_mask;
}

static struct made_walk made;
static struct rule_tables rules;

static int set_up(void **state)
{
    (void)state;
    begin_module(&made);
    put_function(&made, FIRST, 0x80, BYTES(DW_CFA_undefined, RA));
    put_function(&made, NEEDING, 0x80, BYTES(DW_CFA_def_cfa, FP, 16, DW_CFA_offset | FP, 2));
    put_function(&made, UNREADABLE, 0x80, BYTES(DW_CFA_def_cfa, FP, 16, DW_CFA_offset | FP, 2));
    put_function(&made, PLAIN, 0x80, NULL, 0);
    put_function(&made, RETURNING, 0x80, BYTES(DW_CFA_def_cfa, FP, 16, DW_CFA_offset | FP, 2));
    put_code(&made, RETURNING, (const uint8_t *)unreadable, sizeof unreadable);
    put_code(&made, RETURNING + 0x48, (const uint8_t *)returns, sizeof returns);
#ifdef __x86_64__
    put_code(&made, NEEDING, entry, sizeof entry);
#endif
    put_code(&made, UNREADABLE, (const uint8_t *)unreadable, sizeof unreadable);
    put_code(&made, STUB, (const uint8_t *)stub, sizeof stub);
    put_code(&made, INDIRECT - sizeof indirect, (const uint8_t *)indirect, sizeof indirect);
    put_call(&made, OF_NEEDING, NEEDING);
    put_call(&made, OF_UNREADABLE, UNREADABLE);
    put_call(&made, OF_OTHER, OTHER);
    put_call(&made, OF_STUB, STUB);
    put_code(&made, END, made_thread_end, sizeof made_thread_end);
    end_module(&made);
    forget_register(&made, FP);
    code_mask = UINT64_MAX;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rule_tables_free(&rules);
    made_walk_free(&made);
    return 0;
}

/* Puts a frame of the function: the saved frame pointer, and a caller that the first function
 * called. */
static void put_frame(uint64_t word, uint64_t return_offset)
{
    made.words[word] = 0;
    made.words[word + 1] = code_at(return_offset);
    made.words[word + 2] = code_at(FIRST + 8);
}

/* Whether the frame pointer of a thread in `function`, with its stack pointer at word 0, is found;
 * then it is set to this word. */
static bool is_found_with(uint64_t function, uint64_t word, uint64_t expected)
{
    struct unwind_hints hints;
    set_register(&made, PC, code_at(function + 0x40));
    set_register(&made, SP, word_at(0));
    forget_register(&made, FP);
    assert_int_equal(
        unwind_snapshot(&rules, &made.space, &made.snapshot, made.max_depth, &made.stack, &hints),
        0);
    assert_int_equal(made.stack.cut, STACK_CUT_NO_REGISTER);
    assert_int_equal(hints.function, code_at(function));
    assert_int_equal(hints.function_sp, word_at(0));
    bool found = frame_pointer_find(&rules, &made.space, &made.snapshot, made.max_depth, &hints,
                                    expected, &made.stack);
    assert_int_equal(found, registers_has(&made.snapshot.registers, FP));
    if (found)
        assert_int_equal(made.snapshot.registers.values[FP], word_at(word));
    return found;
}

static bool is_found(uint64_t function, uint64_t word)
{
    return is_found_with(function, word, 0);
}

/* Whether NEEDING's is found at word 6, which is tried first, because its prologue puts it there.
 * On AArch64 prologues are not read, but another thread had it at this place. */
static bool is_found_first(void)
{
#ifdef __x86_64__
    return is_found(NEEDING, 6);
#else
    return is_found_with(NEEDING, 6, word_at(6));
#endif
}

/* The place where it was in another thread is tried, and checked like any other. */
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
    /* A wrong hint does not hide what is found without it. */
    put_frame(33, OF_UNREADABLE);
    assert_true(is_found_with(UNREADABLE, 33, word_at(6)));
}

static void test_by_the_first_instructions(void **state)
{
    (void)state;
    struct unwind_hints hints;
    put_frame(6, OF_NEEDING);
    assert_true(is_found_first());
    assert_int_equal(
        unwind_snapshot(&rules, &made.space, &made.snapshot, made.max_depth, &made.stack, &hints),
        0);
    ASSERT_STACK(&made.stack, STACK_WHOLE, code_at(NEEDING + 0x40), code_at(OF_NEEDING - 1),
                 code_at(FIRST + 7));
}

/* Any call may have led there, because the called function may have made a tail call. */
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

/* Calls that may be of the function: through a register, or an entry of the PLT. */
static void test_calls_that_may_be_of_the_function(void **state)
{
    (void)state;
    put_frame(6, INDIRECT);
    assert_true(is_found_first());
    put_frame(6, OF_STUB);
    assert_true(is_found_first());
    put_frame(6, OF_OTHER);
    assert_false(is_found_first());
    put_frame(6, NO_CALL);
    assert_false(is_found_first());
    put_frame(6, MADE_CODE_BYTES + 0x20); /* no code */
    assert_false(is_found_first());
}

/* If the prologue leads to an impossible place, or says nothing, the only place that certainly is a
 * call of the function is taken. */
static void test_by_the_call(void **state)
{
    (void)state;
    put_frame(21, OF_NEEDING);
    put_frame(6, OF_OTHER);
    assert_true(is_found(NEEDING, 21));
    memset(made.words, 0, sizeof made.words);
    put_frame(33, OF_UNREADABLE);
    assert_true(is_found(UNREADABLE, 33));
    /* A possible call is not enough. */
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
    /* A place from which the stack leads nowhere does not count: it is a leftover value. */
    made.words[57] = 0x1234;
    assert_true(is_found(UNREADABLE, 33));
}

/* The stack must lead to its first frame. */
static void test_what_leads_nowhere_is_not_believed(void **state)
{
    (void)state;
    put_frame(6, OF_NEEDING);
    made.words[8] = 0x1234;
    assert_false(is_found_first());
    /* Code without information, a frame pointer of 0, and a thread's end: the first frame. */
    made.words[8] = code_at(END);
    assert_true(is_found_first());
    made.words[6] = 3;
    assert_false(is_found_first());
}

static void test_as_far_as_was_asked_for_or_copied(void **state)
{
    (void)state;
    put_frame(6, OF_NEEDING);
    for (size_t i = 8; i < 40; i++)
        made.words[i] = code_at(PLAIN + 2);
    made.words[40] = 0x1234;
    assert_false(is_found_first());
    made.max_depth = 20;
    assert_true(is_found_first());
    made.max_depth = 100;
    made.snapshot.stack.bytes = 30 * 8;
    assert_true(is_found_first());
    made.snapshot.stack.end = word_at(30); /* the stack ends there */
    assert_false(is_found_first());
    /* The frame itself is not in the copy. */
    made.snapshot.stack.end = word_at(100);
    for (size_t bytes = 0; bytes < 8 * 8; bytes++) {
        made.snapshot.stack.bytes = bytes;
        assert_false(is_found_first());
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
    set_register(&made, PC, code_at(NEEDING + 0x40));
    set_register(&made, SP, word_at(0));
    assert_false(frame_pointer_find(&rules, &made.space, &made.snapshot, made.max_depth, &hints, 0,
                                    &made.stack));
    assert_false(registers_has(&made.snapshot.registers, FP));
}

/* Return addresses may be signed by pointer authentication. */
static void test_a_return_address_that_is_signed(void **state)
{
    (void)state;
    put_frame(33, OF_UNREADABLE);
    made.words[34] |= 0x3aull << 56 | 0x15ull << 48;
    assert_false(is_found(UNREADABLE, 33));
    code_mask = UINT64_MAX >> 16;
    assert_true(is_found(UNREADABLE, 33));
}

/* A function that is not code of a file, and a stack pointer at the end of the address space. */
static void test_hints_that_lead_nowhere(void **state)
{
    (void)state;
    static const struct unwind_hints hints[] = {
        {.function = 0x1234, .function_address = 0x1240, .function_sp = MADE_STACK},
        {.function = UINT64_MAX, .function_address = UINT64_MAX, .function_sp = UINT64_MAX - 7},
        {.function = MADE_JIT, .function_address = MADE_JIT + 8, .function_sp = 0},
    };
    set_register(&made, PC, code_at(NEEDING + 0x40));
    set_register(&made, SP, word_at(0));
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        assert_false(frame_pointer_find(&rules, &made.space, &made.snapshot, made.max_depth,
                                        &hints[i], 0, &made.stack));
        assert_false(registers_has(&made.snapshot.registers, FP));
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
        TEST(test_a_return_address_that_is_signed),
        TEST(test_hints_that_lead_nowhere),
    };
    return cmocka_run_group_tests_name("frame_pointer", tests, NULL, NULL);
}
