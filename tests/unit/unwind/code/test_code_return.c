/* Where code returns to, according to the instructions up to its returns. */
#include "unit.h"

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

#define WITH_MODULE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#ifdef __x86_64__

/* Finds the return from the byte at `at` of the code. */
static bool find(const uint8_t *code, size_t bytes, uint64_t at, struct code_return *ret_return)
{
    made_walk_free(&made);
    begin_module(&made);
    memset(made.code, 0xf4, sizeof made.code); /* hlt: no path continues from here */
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
 * 15 add $40,%rsp; 19 pop %rbp; 20 pop %rbx; 21 ret; 22 the same again */
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

/* A call that does not return is followed by unrelated code, here with less on the stack. */
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

/* Padding does not follow a call that returns. */
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

/* The other module's function returns to the caller. */
static void test_a_jump_to_another_module(void **state)
{
    (void)state;
    /* 0 add $8,%rsp; 4 jmp *0x1000(%rip) */
    static const uint8_t code[] = {0x48, 0x83, 0xc4, 0x08, 0xff, 0x25, 0, 0x10, 0, 0};
    struct code_return found;
    assert_true(find(code, sizeof code, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, RSP, 8, 0);
}

/* A register that was pushed on the path is popped with the same value. */
static void test_what_was_stored_on_the_way(void **state)
{
    (void)state;
    /* 0 push %rbp; 1 push %rcx; 2 mov %eax,%ebp; 4 pop %rcx; 5 pop %rbp; 6 ret */
    static const uint8_t code[] = {0x55, 0x51, 0x89, 0xc5, 0x59, 0x5d, 0xc3};
    struct code_return found;
    assert_true(find(code, sizeof code, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, RSP, 0, 0);
    assert_value(&found.frame_pointer, CODE_VALUE_REGISTER, RBP, 0, 0);
    /* Memory below the stack pointer has no known value. */
    static const uint8_t below[] = {0x48, 0x8b, 0x6c, 0x24, 0xf8, 0xc3}; /* mov -8(%rsp),%rbp */
    assert_true(find(below, sizeof below, 0, &found));
    assert_int_equal(found.frame_pointer.kind, CODE_VALUE_UNKNOWN);
}

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

/* Finds the return from an instruction of the code. No path continues from the code around it. */
static bool find(const uint32_t *code, size_t bytes, uint64_t instruction, bool is_after_call,
                 struct code_return *ret_return)
{
    made_walk_free(&made);
    begin_module(&made);
    memset(made.code, 0, sizeof made.code);
    put_code(&made, 0x100, (const uint8_t *)code, bytes);
    end_module(&made);
    return code_return_find(&made.module, MADE_ADDRESS + 0x100 + 4 * instruction, is_after_call,
                            ret_return);
}
#define FIND(code, instruction, ret_return) find(code, sizeof(code), instruction, false, ret_return)

static void assert_value(const struct code_value *value, enum code_value_kind kind, unsigned number,
                         int32_t offset)
{
    assert_int_equal(value->kind, kind);
    assert_int_equal(value->register_number, number);
    assert_int_equal(value->offset, offset);
}

static const uint32_t plain[] = {
    0x71000421, /* 0 subs w1, w1, #1 */
    0x54ffffe1, /* 1 b.ne 0 */
    0x340000a0, /* 2 cbz w0, 7 */
    0xd63f0040, /* 3 blr x2 */
    0xf9400bf3, /* 4 ldr x19, [sp, #16] */
    0xa8c37bfd, /* 5 ldp x29, x30, [sp], #48 */
    0xd65f03c0, /* 6 ret */
    0xf9400bf3, /* 7 the same again */
    0xa8c37bfd, 0xd65f03c0,
};

static void test_every_instruction(void **state)
{
    (void)state;
    static const uint8_t in_body[] = {0, 1, 2, 3, 4, 5, 7, 8};
    struct code_return found;
    for (size_t i = 0; i < sizeof in_body; i++) {
        assert_true(FIND(plain, in_body[i], &found));
        assert_value(&found.sp, CODE_VALUE_REGISTER, SP, 48);
        assert_value(&found.frame_pointer, CODE_VALUE_MEMORY, SP, 0);
        assert_value(&found.return_address, CODE_VALUE_MEMORY, SP, 8);
    }
    /* Its caller's again. */
    assert_true(FIND(plain, 6, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, SP, 0);
    assert_value(&found.frame_pointer, CODE_VALUE_REGISTER, FP, 0);
    assert_value(&found.return_address, CODE_VALUE_REGISTER, LR, 0);
}

static void test_a_leaf(void **state)
{
    (void)state;
    static const uint32_t leaf[] = {0x910083ff, 0xd65f03c0}; /* 0 add sp, sp, #32; 1 ret */
    struct code_return found;
    assert_true(FIND(leaf, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, SP, 32);
    assert_value(&found.return_address, CODE_VALUE_REGISTER, LR, 0);
    /* A call has overwritten the register, so this is not a leaf. */
    assert_false(find(leaf, sizeof leaf, 0, true, &found));
    assert_true(find(plain, sizeof plain, 4, true, &found));
    static const uint32_t calls[] = {0x94000010, 0xd65f03c0}; /* 0 bl; 1 ret */
    assert_false(FIND(calls, 0, &found));
}

static void test_a_stack_pointer_from_the_frame_pointer(void **state)
{
    (void)state;
    static const uint32_t code[] = {
        0xcb2163ff, /* 0 sub sp, sp, x1 */
        0x910003bf, /* 1 mov sp, x29 */
        0xa8c17bfd, /* 2 ldp x29, x30, [sp], #16 */
        0xd65f03c0, /* 3 ret */
    };
    static const uint32_t loads[] = {
        0xf94007be, /* 0 ldr x30, [x29, #8] */
        0xf94003bd, /* 1 ldr x29, [x29] */
        0xd65f03c0, /* 2 ret */
    };
    struct code_return found;
    for (uint64_t i = 0; i < 2; i++) {
        assert_true(FIND(code, i, &found));
        assert_value(&found.sp, CODE_VALUE_REGISTER, FP, 16);
        assert_value(&found.frame_pointer, CODE_VALUE_MEMORY, FP, 0);
        assert_value(&found.return_address, CODE_VALUE_MEMORY, FP, 8);
    }
    assert_true(FIND(loads, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, SP, 0);
    assert_value(&found.frame_pointer, CODE_VALUE_MEMORY, FP, 0);
    assert_value(&found.return_address, CODE_VALUE_MEMORY, FP, 8);
}

static void test_a_stack_pointer_that_is_not_known(void **state)
{
    (void)state;
    static const uint32_t changes[] = {
        0xcb2163ff, /* sub sp, sp, x1 */
        0x927cec1f, /* and sp, x0, #-16 */
        0xd27cec1f, /* eor sp, x0, #-16 */
        0x043f503f, /* addvl sp, sp, #1 */
        0x043f5fff, /* addsvl sp, sp, #-1 */
        0x047f583f, /* addspl sp, sp, #1 */
        0x918103ff, /* addg sp, sp, #16, #0 */
        0xd18207ff, /* subg sp, sp, #32, #1 */
        0x9adf13ff, /* irg sp, sp */
        0x9a0223ff, /* addpt sp, sp, x2 */
    };
    struct code_return found;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const uint32_t code[] = {changes[i], 0xd65f03c0}; /* ret */
        assert_false(FIND(code, 0, &found));
        assert_true(FIND(code, 1, &found));
    }
}

static void test_ways_that_disagree(void **state)
{
    (void)state;
    /* 0 cbz w0, 3; 1 add sp, sp, #16; 2 ret; 3 ret */
    static const uint32_t code[] = {0x34000060, 0x910043ff, 0xd65f03c0, 0xd65f03c0};
    struct code_return found;
    assert_false(FIND(code, 0, &found));
    assert_true(FIND(code, 1, &found));
    /* 0 sub sp, sp, #16; 1 subs w1, w1, #1; 2 b.ne 0; 3 ret */
    static const uint32_t loop[] = {0xd10043ff, 0x71000421, 0x54ffffc1, 0xd65f03c0};
    assert_false(FIND(loop, 0, &found));
    /* 0 cbz w0, 3; 1 mov w29, w1; 2 ret; 3 ret */
    static const uint32_t frame_pointers[] = {0x34000060, 0x2a0103fd, 0xd65f03c0, 0xd65f03c0};
    assert_true(FIND(frame_pointers, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, SP, 0);
    assert_value(&found.return_address, CODE_VALUE_REGISTER, LR, 0);
    assert_int_equal(found.frame_pointer.kind, CODE_VALUE_UNKNOWN);
}

static void test_ways_that_do_not_return(void **state)
{
    (void)state;
    static const uint32_t ends[] = {
        0xd61f0060, /* br x3: perhaps through a jump table */
        0x14000000, /* b . */
        0xd4200020, /* brk #1 */
        0xd4a00001, /* dcps1 */
        0x00000000, /* udf #0 */
    };
    struct code_return found;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const uint32_t code[] = {ends[i], 0xd65f03c0}; /* ret */
        assert_false(FIND(code, 0, &found));
    }
    /* 0 mov x8, #93; 1 svc #0; 2 ret */
    static const uint32_t end_of_thread[] = {0xd2800ba8, 0xd4000001, 0xd65f03c0};
    assert_false(FIND(end_of_thread, 0, &found));
    assert_true(FIND(end_of_thread, 1, &found));
    /* 0 mov x8, #64; 1 svc #0; 2 ret */
    static const uint32_t write[] = {0xd2800808, 0xd4000001, 0xd65f03c0};
    assert_true(FIND(write, 0, &found));
}

/* The call is followed by padding, or another function. */
static void test_a_call_that_does_not_return(void **state)
{
    (void)state;
    static const uint32_t next[] = {0xd503201f /* nop */, 0xd503233f /* paciasp */,
                                    0xd503245f /* bti c */};
    struct code_return found;
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        /* 0 cbz w0, 4; 1 bl; 2 that; 3 add sp, sp, #16; 4 ret */
        const uint32_t code[] = {0x34000080, 0x94000010, next[i], 0x910043ff, 0xd65f03c0};
        assert_true(FIND(code, 0, &found));
        assert_value(&found.sp, CODE_VALUE_REGISTER, SP, 0);
        assert_value(&found.return_address, CODE_VALUE_REGISTER, LR, 0);
        assert_false(find(code, sizeof code, 2, true, &found));
    }
}

#define NO_REGISTER 0

/* Each of the instructions writes that register, and no other one that matters. */
static void check_written(const uint32_t *instructions, size_t count, unsigned written)
{
    struct code_return found;
    for (size_t i = 0; i < count; i++) {
        /* ret */
        const uint32_t code[] = {instructions[i], 0xd65f03c0};
        /* ldp x29, x30, [sp], #16; ret */
        const uint32_t loads[] = {instructions[i], 0xa8c17bfd, 0xd65f03c0};
        assert_int_equal(FIND(loads, 0, &found), written != SP);
        assert_int_equal(FIND(code, 0, &found), written != SP && written != LR);
        if (written == SP || written == LR)
            continue;
        assert_value(&found.sp, CODE_VALUE_REGISTER, SP, 0);
        assert_value(&found.return_address, CODE_VALUE_REGISTER, LR, 0);
        if (written == FP)
            assert_int_equal(found.frame_pointer.kind, CODE_VALUE_UNKNOWN);
        else
            assert_value(&found.frame_pointer, CODE_VALUE_REGISTER, FP, 0);
    }
}
#define CHECK_WRITTEN(instructions, written)                                                       \
    check_written(instructions, sizeof(instructions) / sizeof *(instructions), written)

static void test_registers_that_accesses_write(void **state)
{
    (void)state;
    static const uint32_t nothing[] = {
        0xf8627820, /* ldr x0, [x1, x2, lsl #3] */
        0xf822683e, /* str x30, [x1, x2] */
        0x4c407820, /* ld1 {v0.4s}, [x1] */
        0x3ce2683e, /* ldr q30, [x1, x2] */
        0x58000040, /* ldr x0, .+8 */
        0x48207fe2, /* casp x0, x1, x2, x3, [sp] */
        0xd9411be0, /* ldiapp x0, x1, [sp] */
        0xf87fe7e0, /* ldraa x0, [sp, #-16] */
    };
    static const uint32_t frame_pointer[] = {
        0x483c7c40, /* casp x28, x29, x0, x1, [x2] */
        0xf83fd016, /* ld64b x22, [x0] */
        0x1d01045d, /* cpyp [x29]!, [x1]!, x2! */
        0x1dc247a0, /* setgm [x0]!, x29!, x2 */
        0x4cdf7ba0, /* ld1 {v0.4s}, [x29], #16 */
    };
    static const uint32_t link[] = {
        0xf862683e, /* ldr x30, [x1, x2] */
        0x5800005e, /* ldr x30, .+8 */
        0xc85f7c3e, /* ldxr x30, [x1] */
        0x483e7c40, /* casp x30, xzr, x0, x1, [x2] */
        0x190107c0, /* cpyfp [x30]!, [x1]!, x0! */
        0x1d9e0440, /* cpye [x0]!, [x30]!, x2! */
        0x19c2043e, /* setp [x30]!, x1!, x2 */
        0xd9410bc0, /* ldiapp x0, x1, [x30], #16 */
    };
    static const uint32_t sp[] = {
        0x4cdf7be0, /* ld1 {v0.4s}, [sp], #16 */
        0xd9a027ff, /* st2g sp, [sp], #32 */
        0xd9010be0, /* stilp x0, x1, [sp, #-16]! */
        0x99410be0, /* ldiapp w0, w1, [sp], #8 */
        0xd9800be0, /* stlr x0, [sp, #-8]! */
        0x99c00be0, /* ldapr w0, [sp], #4 */
        0xf87fefe0, /* ldraa x0, [sp, #-16]! */
    };
    CHECK_WRITTEN(nothing, NO_REGISTER);
    CHECK_WRITTEN(frame_pointer, FP);
    CHECK_WRITTEN(link, LR);
    CHECK_WRITTEN(sp, SP);
}

/* General registers, not those of vectors with the same numbers. */
static void test_registers_that_others_write(void **state)
{
    (void)state;
    static const uint32_t nothing[] = {
        0xd51bd05e, /* msr tpidr_el0, x30 */
        0x9e67001e, /* fmov d30, x0 */
        0x9eaf003d, /* fmov v29.d[1], x1 */
        0x9e62003e, /* scvtf d30, x1 */
        0x1e43f43d, /* ucvtf d29, w1, #3 */
        0x1e6043be, /* fmov d30, d29 */
        0x4e080c3e, /* dup v30.2d, x1 */
        0x4e181c1e, /* mov v30.d[1], x0 */
        0x04e1001e, /* add z30.d, z0.d, z1.d */
        0x04f0c3fe, /* incd z30.d */
        0x05e0383e, /* mov z30.d, x1 */
        0x05e8a01d, /* mov z29.d, p0/m, x0 */
        0x2500801e, /* cmpne p14.b, p0/z, z0.b, #0 */
        0x918103e0, /* addg x0, sp, #16, #0 */
    };
    static const uint32_t frame_pointer[] = {
        0xd53bd05d, /* mrs x29, tpidr_el0 */
        0x9eae003d, /* fmov x29, v1.d[1] */
        0x4e183c3d, /* mov x29, v1.d[1] */
        0x1e25003d, /* fcvtau w29, s1 */
        0x043f503d, /* addvl x29, sp, #1 */
        0x0420f3fd, /* sqincb x29, w29 */
        0x2528883d, /* sqincp x29, p1.b, w29 */
        0x05b1a03d, /* clastb w29, p0, w29, z1.s */
    };
    static const uint32_t link[] = {
        0xd528711e, /* sysl x30, #0, c7, c1, #0 */
        0x9e66001e, /* fmov x30, d0 */
        0x0e033c3e, /* umov w30, v1.b[1] */
        0x4e062c3e, /* smov x30, v1.h[1] */
        0x9e78003e, /* fcvtzs x30, d1 */
        0x9e59f43e, /* fcvtzu x30, d1, #3 */
        0x04bf503e, /* rdvl x30, #1 */
        0x0420e3fe, /* cntb x30 */
        0x2520803e, /* cntp x30, p0, p1.b */
        0x05e0a03e, /* lasta x30, p0, z1.d */
        0xc04c73fe, /* movt x30, zt0[56] */
    };
    CHECK_WRITTEN(nothing, NO_REGISTER);
    CHECK_WRITTEN(frame_pointer, FP);
    CHECK_WRITTEN(link, LR);
}

/* Another module's function returns to the caller. */
static void test_a_jump_to_another_module(void **state)
{
    (void)state;
    static const uint32_t code[] = {0x910043ff, 0xd61f0220}; /* 0 add sp, sp, #16; 1 br x17 */
    struct code_return found;
    assert_true(FIND(code, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, SP, 16);
    assert_value(&found.return_address, CODE_VALUE_REGISTER, LR, 0);
}

/* A register that was stored on the path is loaded with the same value. */
static void test_what_was_stored_on_the_way(void **state)
{
    (void)state;
    static const uint32_t code[] = {
        0xf81f0ffe, /* 0 str x30, [sp, #-16]! */
        0xd63f0040, /* 1 blr x2 */
        0xf84107fe, /* 2 ldr x30, [sp], #16 */
        0xd65f0bff, /* 3 retaa */
    };
    struct code_return found;
    assert_true(FIND(code, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, SP, 0);
    assert_value(&found.return_address, CODE_VALUE_REGISTER, LR, 0);
    assert_true(FIND(code, 1, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, SP, 16);
    assert_value(&found.return_address, CODE_VALUE_MEMORY, SP, 0);
}

static void test_what_was_stored_with_a_tag(void **state)
{
    (void)state;
    static const uint32_t code[] = {
        0x69bf7bfd, /* 0 stgp x29, x30, [sp, #-32]! */
        0xd63f0040, /* 1 blr x2 */
        0xa8c27bfd, /* 2 ldp x29, x30, [sp], #32 */
        0xd65f03c0, /* 3 ret */
    };
    struct code_return found;
    assert_true(FIND(code, 0, &found));
    assert_value(&found.sp, CODE_VALUE_REGISTER, SP, 0);
    assert_value(&found.frame_pointer, CODE_VALUE_REGISTER, FP, 0);
    assert_value(&found.return_address, CODE_VALUE_REGISTER, LR, 0);
}

/* Only the bytes that are written are lost. */
static void test_what_was_stored_over_it(void **state)
{
    (void)state;
    static const uint32_t over[] = {
        0x3d8003e0, /* str q0, [sp] */
        0x290007e0, /* stp w0, w1, [sp] */
        0xf90003ff, /* str xzr, [sp] */
        0x3d001fe0, /* str b0, [sp, #7] */
        0xf81fc3e0, /* stur x0, [sp, #-4] */
    };
    static const uint32_t beside[] = {
        0xb9000be0, /* str w0, [sp, #8] */
        0xf81f83e0, /* stur x0, [sp, #-8] */
        0xa90087e0, /* stp x0, x1, [sp, #8] */
        0x690087e0, /* stgp x0, x1, [sp, #16] */
        0x3dc003e0, /* ldr q0, [sp] */
    };
    /* 0 str x30, [sp, #-16]!; 1 that; 2 ldr x30, [sp], #16; 3 ret */
    uint32_t code[] = {0xf81f0ffe, 0, 0xf84107fe, 0xd65f03c0};
    struct code_return found;
    for (size_t i = 0; i < sizeof over / sizeof *over; i++) {
        code[1] = over[i];
        assert_false(FIND(code, 0, &found));
    }
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        code[1] = beside[i];
        assert_true(FIND(code, 0, &found));
        assert_value(&found.return_address, CODE_VALUE_REGISTER, LR, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MODULE(test_every_instruction),
        WITH_MODULE(test_a_leaf),
        WITH_MODULE(test_a_stack_pointer_from_the_frame_pointer),
        WITH_MODULE(test_a_stack_pointer_that_is_not_known),
        WITH_MODULE(test_ways_that_disagree),
        WITH_MODULE(test_ways_that_do_not_return),
        WITH_MODULE(test_a_call_that_does_not_return),
        WITH_MODULE(test_registers_that_accesses_write),
        WITH_MODULE(test_registers_that_others_write),
        WITH_MODULE(test_a_jump_to_another_module),
        WITH_MODULE(test_what_was_stored_on_the_way),
        WITH_MODULE(test_what_was_stored_with_a_tag),
        WITH_MODULE(test_what_was_stored_over_it),
    };
    return cmocka_run_group_tests_name("code_return", tests, NULL, NULL);
}

#endif
