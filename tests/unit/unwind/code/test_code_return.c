/* Where code returns to, by the instructions up to its returns. */
#include "unit.h"

#ifdef __x86_64__

#include "make_walk.h"
#include "unwind/code/code_return.h"

static struct made_walk made;

static int set_up(void **state)
{
    (void)state;
    begin_module(&made);
    end_module(&made);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    made_walk_free(&made);
    return 0;
}

/* What is found from the byte at `at` of the code. */
static bool find(const uint8_t *code, size_t bytes, uint64_t at, struct code_return *ret_return)
{
    made_walk_free(&made);
    begin_module(&made);
    memset(made.code, 0xf4, sizeof made.code); /* hlt: no way goes on from here */
    put_code(&made, 0x100, code, bytes);
    end_module(&made);
    return code_return_find(&made.module, MADE_ADDRESS + 0x100 + at, false, ret_return);
}

static void assert_value(const struct code_value *value, enum code_value_kind kind, unsigned number,
                         int32_t offset, int32_t then_offset)
{
    assert_int_equal(value->kind, kind);
    if (kind == CODE_VALUE_UNKNOWN)
        return;
    assert_int_equal(value->register_number, number);
    assert_int_equal(value->offset, offset);
    assert_int_equal(value->then_offset, then_offset);
}

/*  0 movaps %xmm0,16(%rsp); 5 dec %ecx; 7 jne 5; 9 test %eax,%eax; 11 je 22; 13 call *%rdx;
 * 15 add $40,%rsp; 19 pop %rbp; 20 pop %rbx; 21 ret; 22 the same once more */
static const uint8_t plain[] = {0x0f, 0x29, 0x44, 0x24, 0x10, 0xff, 0xc9, 0x75, 0xfc, 0x85,
                                0xc0, 0x74, 0x09, 0xff, 0xd2, 0x48, 0x83, 0xc4, 0x28, 0x5d,
                                0x5b, 0xc3, 0x48, 0x83, 0xc4, 0x28, 0x5d, 0x5b, 0xc3};

static void test_every_instruction(void **state)
{
    (void)state;
    static const uint8_t in_body[] = {0, 5, 7, 9, 11, 13, 15, 22};
    struct code_return found;
    for (size_t i = 0; i < sizeof in_body; i++) {
        assert_true(find(plain, sizeof plain, in_body[i], &found));
        assert_value(&found.sp, CODE_VALUE_REGISTER, RSP, 56, 0);
        assert_value(&found.frame_pointer, CODE_VALUE_MEMORY, RSP, 40, 0);
    }
    assert_true(find(plain, sizeof plain, 19, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, RSP, 16, 0);
    assert_value(&found.frame_pointer, CODE_VALUE_MEMORY, RSP, 0, 0);
    /* Its caller's again. */
    assert_true(find(plain, sizeof plain, 20, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, RSP, 8, 0);
    assert_value(&found.frame_pointer, CODE_VALUE_REGISTER, RBP, 0, 0);
    assert_true(find(plain, sizeof plain, 21, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, RSP, 0, 0);
}

static void test_a_stack_pointer_that_was_saved(void **state)
{
    (void)state;
    /* 0 mov 200(%rsp),%rsp; 8 pop %rbp; 9 ret */
    static const uint8_t on_stack[] = {0x48, 0x8b, 0xa4, 0x24, 0xc8, 0, 0, 0, 0x5d, 0xc3};
    /* 0 mov %r10,%rsp; 3 ret */
    static const uint8_t in_register[] = {0x4c, 0x89, 0xd4, 0xc3};
    /* 0 nop; 1 leave; 2 ret */
    static const uint8_t leave[] = {0x90, 0xc9, 0xc3};
    struct code_return found;
    assert_true(find(on_stack, sizeof on_stack, 0, &found));
    assert_value(&found.sp, CODE_VALUE_MEMORY, RSP, 200, 8);
    assert_value(&found.frame_pointer, CODE_VALUE_FAR, RSP, 200, 0);
    assert_true(find(in_register, sizeof in_register, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, R10, 0, 0);
    assert_value(&found.frame_pointer, CODE_VALUE_REGISTER, RBP, 0, 0);
    assert_true(find(leave, sizeof leave, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, RBP, 8, 0);
    assert_value(&found.frame_pointer, CODE_VALUE_MEMORY, RBP, 0, 0);
}

/*  0 mov %rsp,%r10; 3 and $-32,%rsp; 7 sub $64,%rsp; 11 mov %r10,48(%rsp); 16 call *%rdx;
 * 18 mov 48(%rsp),%rsp; 23 ret */
static void test_a_stack_pointer_that_is_aligned_on_the_way(void **state)
{
    (void)state;
    static const uint8_t code[] = {0x49, 0x89, 0xe2, 0x48, 0x83, 0xe4, 0xe0, 0x48,
                                   0x83, 0xec, 0x40, 0x4c, 0x89, 0x54, 0x24, 0x30,
                                   0xff, 0xd2, 0x48, 0x8b, 0x64, 0x24, 0x30, 0xc3};
    struct code_return found;
    assert_true(find(code, sizeof code, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, RSP, 0, 0);
    assert_true(find(code, sizeof code, 3, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, R10, 0, 0);
    assert_true(find(code, sizeof code, 16, &found));
    assert_value(&found.sp, CODE_VALUE_MEMORY, RSP, 48, 0);
}

/* A call that does not return is followed by other code, here with less on the stack. */
static void test_ways_that_disagree(void **state)
{
    (void)state;
    /* 0 test %eax,%eax; 2 je 10; 4 call; 9 ret; 10 pop %rbx; 11 ret */
    static const uint8_t ends[] = {0x85, 0xc0, 0x74, 0x06, 0xe8, 1, 0, 0, 0, 0xc3, 0x5b, 0xc3};
    /* 0 push %rax; 1 dec %ecx; 3 jne 0; 5 ret */
    static const uint8_t loop[] = {0x50, 0xff, 0xc9, 0x75, 0xfb, 0xc3};
    struct code_return found;
    assert_false(find(ends, sizeof ends, 0, &found));
    assert_true(find(ends, sizeof ends, 9, &found));
    assert_false(find(loop, sizeof loop, 0, &found));
}

/* But padding does not follow a call that returns. */
static void test_a_call_that_does_not_return(void **state)
{
    (void)state;
    /* 0 test %eax,%eax; 2 je 10; 4 call; 9 nop; 10 pop %rbx; 11 ret */
    static const uint8_t code[] = {0x85, 0xc0, 0x74, 0x06, 0xe8, 1, 0, 0, 0, 0x90, 0x5b, 0xc3};
    struct code_return found;
    assert_true(find(code, sizeof code, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, RSP, 8, 0);
    assert_true(find(code, sizeof code, 9, &found));
    assert_false(code_return_find(&made.module, MADE_ADDRESS + 0x109, true, &found));
    assert_true(code_return_find(&made.module, MADE_ADDRESS + 0x10a, true, &found));
}

static void test_a_frame_pointer_that_differs_is_unknown(void **state)
{
    (void)state;
    /* 0 test %eax,%eax; 2 je 7; 4 mov %ecx,%ebp; 6 ret; 7 ret */
    static const uint8_t code[] = {0x85, 0xc0, 0x74, 0x03, 0x89, 0xcd, 0xc3, 0xc3};
    struct code_return found;
    assert_true(find(code, sizeof code, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, RSP, 0, 0);
    assert_int_equal(found.frame_pointer.kind, CODE_VALUE_UNKNOWN);
}

static void test_ways_that_do_not_return(void **state)
{
    (void)state;
    /* 0 mov $60,%eax; 5 syscall; 7 ret */
    static const uint8_t end_of_thread[] = {0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05, 0xc3};
    /* 0 jmp *%rax; 2 ret */
    static const uint8_t computed[] = {0xff, 0xe0, 0xc3};
    /* 0 jmp 0 */
    static const uint8_t endless[] = {0xeb, 0xfe};
    struct code_return found;
    assert_false(find(end_of_thread, sizeof end_of_thread, 0, &found));
    assert_true(find(end_of_thread, sizeof end_of_thread, 5, &found));
    assert_false(find(computed, sizeof computed, 0, &found));
    assert_false(find(endless, sizeof endless, 0, &found));
    assert_false(find(plain, 0, 0, &found));
}

/* Another module's function returns to the caller. */
static void test_a_jump_to_another_module(void **state)
{
    (void)state;
    /* 0 add $8,%rsp; 4 jmp *0x1000(%rip) */
    static const uint8_t code[] = {0x48, 0x83, 0xc4, 0x08, 0xff, 0x25, 0, 0x10, 0, 0};
    struct code_return found;
    assert_true(find(code, sizeof code, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, RSP, 8, 0);
}

/* What was pushed on the way is popped as it was. */
static void test_what_was_stored_on_the_way(void **state)
{
    (void)state;
    /* 0 push %rbp; 1 push %rcx; 2 mov %eax,%ebp; 4 pop %rcx; 5 pop %rbp; 6 ret */
    static const uint8_t code[] = {0x55, 0x51, 0x89, 0xc5, 0x59, 0x5d, 0xc3};
    struct code_return found;
    assert_true(find(code, sizeof code, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, RSP, 0, 0);
    assert_value(&found.frame_pointer, CODE_VALUE_REGISTER, RBP, 0, 0);
    /* And memory below the stack pointer holds nothing. */
    static const uint8_t below[] = {0x48, 0x8b, 0x6c, 0x24, 0xf8, 0xc3}; /* mov -8(%rsp),%rbp */
    assert_true(find(below, sizeof below, 0, &found));
    assert_int_equal(found.frame_pointer.kind, CODE_VALUE_UNKNOWN);
}

#define WITH_MODULE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MODULE(test_every_instruction),
        WITH_MODULE(test_a_stack_pointer_that_was_saved),
        WITH_MODULE(test_a_stack_pointer_that_is_aligned_on_the_way),
        WITH_MODULE(test_ways_that_disagree),
        WITH_MODULE(test_a_call_that_does_not_return),
        WITH_MODULE(test_a_frame_pointer_that_differs_is_unknown),
        WITH_MODULE(test_ways_that_do_not_return),
        WITH_MODULE(test_a_jump_to_another_module),
        WITH_MODULE(test_what_was_stored_on_the_way),
    };
    return cmocka_run_group_tests_name("code_return", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif
