/* Where functions have their return address, according to their instructions. */
#include "unit.h"
#include "unwind/code/code_frame.h"

#ifdef __x86_64__

/* A function that saves rbx, makes a call if its argument is not 0, and has a second return:
 *  0 push %rbx; 1 test %edi,%edi; 3 je 17; 5 sub $16,%rsp; 9 call; 14 add $16,%rsp (4 bytes: 18);
 * 18 pop %rbx; 19 ret; 20 pop %rbx; 21 ret */
static const uint8_t plain[] = {0x53, 0x85, 0xff, 0x74, 0x0f, 0x48, 0x83, 0xec, 0x10, 0xe8, 0,
                                0,    0,    0,    0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3, 0x5b, 0xc3};

static void check_by_sp(const uint8_t *code, size_t bytes, size_t at, int32_t return_address)
{
    struct code_frame frame = code_frame_at(code, bytes, at);
    assert_int_equal(frame.kind, CODE_FRAME_BY_SP);
    assert_int_equal(frame.return_address, return_address);
    assert_int_equal(frame.caller_sp, return_address + 8);
    assert_false(frame.has_saved_frame_pointer);
}

static void check_unknown(const uint8_t *code, size_t bytes, size_t at)
{
    assert_int_equal(code_frame_at(code, bytes, at).kind, CODE_FRAME_UNKNOWN);
}

static void test_every_instruction(void **state)
{
    (void)state;
    static const int32_t above_sp[sizeof plain] = {
        [1] = 8, [3] = 8, [5] = 8, [9] = 24, [14] = 24, [18] = 8, [20] = 8};
    static const size_t begins[] = {0, 1, 3, 5, 9, 14, 18, 19, 20, 21};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        check_by_sp(plain, sizeof plain, begins[i], above_sp[begins[i]]);
    /* In the middle of the call, like a return address minus one. */
    check_by_sp(plain, sizeof plain, 13, 24);
}

static void test_a_frame_pointer(void **state)
{
    (void)state;
    /* 0 endbr64; 4 push %rbp; 5 mov %rsp,%rbp; 8 push %rbx; 9 sub %rax,%rsp; 12 lea -8(%rbp),%rsp;
     * 16 pop %rbx; 17 leave; 18 ret */
    static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x53, 0x48,
                                   0x29, 0xc4, 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0xc9, 0xc3};
    check_by_sp(code, sizeof code, 0, 0);
    check_by_sp(code, sizeof code, 4, 0);
    struct code_frame frame = code_frame_at(code, sizeof code, 5);
    assert_int_equal(frame.kind, CODE_FRAME_BY_SP);
    assert_int_equal(frame.return_address, 8);
    assert_true(frame.has_saved_frame_pointer);
    assert_int_equal(frame.saved_frame_pointer, 0);
    for (size_t at = 8; at <= 17; at++)
        assert_int_equal(code_frame_at(code, sizeof code, at).kind, CODE_FRAME_BY_POINTER);
    check_by_sp(code, sizeof code, 18, 0);
}

/* The caller's frame pointer is saved with other registers, and rbp is used for something else. */
static void test_a_saved_frame_pointer_that_is_none(void **state)
{
    (void)state;
    /* 0 push %rbp; 1 push %rbx; 2 mov %edi,%ebp; 4 sub $8,%rsp; 8 nop; */
    static const uint8_t code[] = {0x55, 0x53, 0x89, 0xfd, 0x48, 0x83, 0xec, 0x08, 0x90};
    struct code_frame frame = code_frame_at(code, sizeof code, 8);
    assert_int_equal(frame.kind, CODE_FRAME_BY_SP);
    assert_int_equal(frame.return_address, 24);
    assert_true(frame.has_saved_frame_pointer);
    assert_int_equal(frame.saved_frame_pointer, 16);
}

/* As in compiled Java code, with frame pointers and without:
 *  0 sub $24,%rsp; 4 mov %rbp,16(%rsp); 9 mov %rsp,%rbp; 12 add $16,%rbp; 16 nop; 17 add $16,%rsp;
 * 21 pop %rbp; 22 nop; 23 ret */
static void test_a_frame_pointer_saved_by_a_move(void **state)
{
    (void)state;
    static const uint8_t code[] = {0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24,
                                   0x10, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xc5, 0x10,
                                   0x90, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0x90, 0xc3};
    static const size_t saved[] = {9, 12, 16, 17};
    check_by_sp(code, sizeof code, 4, 24);
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++) {
        struct code_frame frame = code_frame_at(code, sizeof code, saved[i]);
        assert_int_equal(frame.kind, CODE_FRAME_BY_SP);
        assert_int_equal(frame.return_address, 24);
        assert_true(frame.has_saved_frame_pointer);
        assert_int_equal(frame.saved_frame_pointer, 16);
    }
    check_by_sp(code, sizeof code, 22, 0);
    check_by_sp(code, sizeof code, 23, 0);
    /* Nothing is saved outside the frame: 24(%rsp) is the return address. */
    uint8_t outside[sizeof code];
    memcpy(outside, code, sizeof code);
    outside[8] = 24;
    check_unknown(outside, sizeof outside, 12);
}

/* 0 sub $8,%rsp; 4 jmp 9; 6 nop; 7 nop; 8 nop; 9 dec %edi; 11 jne 6; 13 add $8,%rsp; 17 ret: the
 * loop's body is reached from its end. */
static void test_a_loop(void **state)
{
    (void)state;
    static const uint8_t code[] = {0x48, 0x83, 0xec, 0x08, 0xeb, 0x03, 0x90, 0x90, 0x90,
                                   0xff, 0xcf, 0x75, 0xf9, 0x48, 0x83, 0xc4, 0x08, 0xc3};
    check_by_sp(code, sizeof code, 7, 8);
    check_by_sp(code, sizeof code, 9, 8);
    check_by_sp(code, sizeof code, 17, 0);
}

/* 0 test %edi,%edi; 2 jne 11; 4 sub $8,%rsp; 8 call through rax, which does not return; 10 nop;
 * 11 ret */
static void test_behind_a_call_that_does_not_return(void **state)
{
    (void)state;
    static const uint8_t code[] = {0x85, 0xff, 0x75, 0x07, 0x48, 0x83,
                                   0xec, 0x08, 0xff, 0xd0, 0x90, 0xc3};
    check_by_sp(code, sizeof code, 8, 8);
    check_by_sp(code, sizeof code, 11, 0);
}

/* 0 lea 8(%rsp),%r10; 5 and $-32,%rsp; 9 push -8(%r10); 13 push %rbp; 14 mov %rsp,%rbp; 17 push
 * %r10; 19 nop; 20 pop %r10; 22 pop %rbp; 23 lea -8(%r10),%rsp; 27 ret: the frame pointer is set
 * up, but what it leads to is not the caller's frame. */
static void test_a_realigned_frame(void **state)
{
    (void)state;
    static const uint8_t code[] = {0x4c, 0x8d, 0x54, 0x24, 0x08, 0x48, 0x83, 0xe4, 0xe0, 0x41,
                                   0xff, 0x72, 0xf8, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x52, 0x90,
                                   0x41, 0x5a, 0x5d, 0x49, 0x8d, 0x62, 0xf8, 0xc3};
    check_by_sp(code, sizeof code, 5, 0);
    for (size_t at = 9; at <= 23; at++)
        assert_int_equal(code_frame_at(code, sizeof code, at).kind, CODE_FRAME_LOST);
    check_unknown(code, sizeof code, 27);
    /* A frame pointer that is set up before the alignment is valid. */
    static const uint8_t after[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0x90};
    assert_int_equal(code_frame_at(after, sizeof after, 8).kind, CODE_FRAME_BY_POINTER);
}

static void test_what_can_not_be_told(void **state)
{
    (void)state;
    static const uint8_t behind_ret[] = {0xc3, 0x90, 0x90};
    check_unknown(behind_ret, sizeof behind_ret, 1);
    /* mov %rsi,%rsp; sub %rax,%rsp; pop %rsp: another stack, or an unknown amount. */
    static const uint8_t writes[][5] = {{0x48, 0x89, 0xf4, 0x90, 0x90},
                                        {0x48, 0x29, 0xc4, 0x90, 0x90},
                                        {0x5c, 0x90, 0x90, 0x90, 0x90}};
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
        check_unknown(writes[i], 5, 4);
    /* rbp is overwritten before it was saved; a pop beyond the frame; not an instruction. */
    check_unknown((const uint8_t[]){0x89, 0xfd, 0x90}, 3, 2);
    check_unknown((const uint8_t[]){0x58, 0x90}, 2, 1);
    check_unknown((const uint8_t[]){0x06, 0x90}, 2, 1);
    check_unknown(plain, 3, 4); /* not all of the code is there */
    check_unknown(plain, sizeof plain, sizeof plain);
}

/* ---- Stubs ---- */

static struct code_frame frame_in_stub(const uint8_t *stubs, size_t bytes, size_t at)
{
    uint8_t code[CODE_STUB_BYTES];
    for (size_t i = 0; i < sizeof code; i++) {
        size_t from = at + i - CODE_STUB_BYTES_BEFORE;
        code[i] = from < bytes ? stubs[from] : 0;
    }
    return code_frame_in_stub(code);
}

/* Checks the instructions at `begins`, each with the number of words that were pushed before it. */
static void check_stubs(const uint8_t *stubs, size_t bytes, const uint8_t (*begins)[2],
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct code_frame frame = frame_in_stub(stubs, bytes, begins[i][0]);
        assert_int_equal(frame.kind, CODE_FRAME_BY_SP);
        assert_int_equal(frame.return_address, 8 * begins[i][1]);
        assert_int_equal(frame.caller_sp, 8 * begins[i][1] + 8);
        assert_false(frame.has_saved_frame_pointer);
    }
}

static void test_stubs(void **state)
{
    (void)state;
    /* 0 push global; 6 jmp through; 12 nop; 16 jmp through; 22 push $0; 27 jmp 0; 32 endbr64;
     * 36 push $1; 41 bnd jmp 0; 47 nop; 48 endbr64; 52 bnd jmp through */
    static const uint8_t usual[] = {
        0xff, 0x35, 1,    2,    3,    4,    0xff, 0x25, 1, 2,    3,    4,    0x0f, 0x1f, 0x40, 0,
        0xff, 0x25, 1,    2,    3,    4,    0x68, 0,    0, 0,    0,    0xe9, 1,    2,    3,    4,
        0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1,    0,    0,    0, 0xf2, 0xe9, 1,    2,    3,    4,    0x90,
        0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1,    2, 3,    4,    0x0f, 0x1f, 0x44, 0,    0};
    static const uint8_t usual_begins[][2] = {{0, 1},  {6, 2},  {16, 0}, {22, 0}, {27, 1},
                                              {32, 0}, {36, 0}, {41, 1}, {48, 0}, {52, 0}};
    check_stubs(usual, sizeof usual, usual_begins, sizeof usual_begins / 2);
    /* mold's: 0 endbr64; 4 push %r11; 6 push global; 12 jmp through; 18 int3; 32 endbr64;
     * 36 mov $7,%r11d; 42 jmp through */
    static const uint8_t mold[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x53, 0xff, 0x35, 1,    2,
                                   3,    4,    0xff, 0x25, 1,    2,    3,    4,    0xcc, 0xcc,
                                   0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
                                   0xcc, 0xcc, 0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 7,    0,
                                   0,    0,    0xff, 0x25, 1,    2,    3,    4};
    static const uint8_t mold_begins[][2] = {{0, 0},  {4, 0},  {6, 1}, {12, 2},
                                             {32, 0}, {36, 0}, {42, 0}};
    check_stubs(mold, sizeof mold, mold_begins, sizeof mold_begins / 2);
}

static void test_no_stubs(void **state)
{
    (void)state;
    /* endbr64; push %r11; ret: push $1; call: jmp without a number: ret behind them */
    static const uint8_t others[][8] = {{0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x53, 0xc3},
                                        {0x68, 1, 0, 0, 0, 0xe8, 1, 2},
                                        {0xe9, 1, 2, 3, 4, 0x90},
                                        {0xff, 0x35, 1, 2, 3, 4, 0xc3},
                                        {0xc3}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(frame_in_stub(others[i], sizeof *others, 0).kind, CODE_FRAME_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_instruction),
        cmocka_unit_test(test_a_frame_pointer),
        cmocka_unit_test(test_a_saved_frame_pointer_that_is_none),
        cmocka_unit_test(test_a_frame_pointer_saved_by_a_move),
        cmocka_unit_test(test_a_loop),
        cmocka_unit_test(test_behind_a_call_that_does_not_return),
        cmocka_unit_test(test_a_realigned_frame),
        cmocka_unit_test(test_what_can_not_be_told),
        cmocka_unit_test(test_stubs),
        cmocka_unit_test(test_no_stubs),
    };
    return cmocka_run_group_tests_name("code_frame", tests, NULL, NULL);
}

#elif defined __aarch64__

#define FRAME_AT(code, number) code_frame_at((const uint8_t *)(code), sizeof(code), 4 * (number))
/* In the middle of a call, as a return address less one is. */
#define FRAME_IN_CALL(code, number)                                                                \
    code_frame_at((const uint8_t *)(code), sizeof(code), 4 * (number) + 3)

#define IN_REGISTER (-1)
#define NOWHERE (-2)

/* The places are in bytes above the stack pointer, or as above. */
static void assert_by_sp(struct code_frame frame, int32_t caller_sp, int32_t return_address,
                         int32_t frame_pointer)
{
    assert_int_equal(frame.kind, CODE_FRAME_BY_SP);
    assert_int_equal(frame.caller_sp, caller_sp);
    assert_int_equal(frame.is_in_link, return_address == IN_REGISTER);
    if (return_address != IN_REGISTER)
        assert_int_equal(frame.return_address, return_address);
    assert_int_equal(frame.has_lost_frame_pointer, frame_pointer == NOWHERE);
    assert_int_equal(frame.has_saved_frame_pointer, frame_pointer >= 0);
    if (frame_pointer >= 0)
        assert_int_equal(frame.saved_frame_pointer, frame_pointer);
}

/* As at the start. */
static void assert_untouched(struct code_frame frame)
{
    assert_by_sp(frame, 0, IN_REGISTER, IN_REGISTER);
}

static void assert_kind(struct code_frame frame, enum code_frame_kind kind)
{
    assert_int_equal(frame.kind, kind);
}

static void test_every_instruction(void **state)
{
    (void)state;
    static const uint32_t code[] = {
        0xd503233f, /* 0 paciasp */
        0x340000e0, /* 1 cbz w0, 8 */
        0xa9be7bfd, /* 2 stp x29, x30, [sp, #-32]! */
        0x910003fd, /* 3 mov x29, sp */
        0xf9000bf3, /* 4 str x19, [sp, #16] */
        0x97fffffb, /* 5 bl 0 */
        0xf9400bf3, /* 6 ldr x19, [sp, #16] */
        0xa8c27bfd, /* 7 ldp x29, x30, [sp], #32 */
        0xd50323bf, /* 8 autiasp */
        0xd65f03c0, /* 9 ret */
    };
    for (size_t i = 0; i <= 2; i++)
        assert_untouched(FRAME_AT(code, i));
    assert_by_sp(FRAME_AT(code, 3), 32, 8, 0);
    for (size_t i = 4; i <= 7; i++)
        assert_kind(FRAME_AT(code, i), CODE_FRAME_BY_POINTER);
    assert_kind(FRAME_IN_CALL(code, 5), CODE_FRAME_BY_POINTER);
    assert_untouched(FRAME_AT(code, 8));
    assert_untouched(FRAME_AT(code, 9));
}

static void test_a_record_above_other_room(void **state)
{
    (void)state;
    static const uint32_t code[] = {
        0xd100c3ff, /* 0 sub sp, sp, #48 */
        0xa9027bfd, /* 1 stp x29, x30, [sp, #32] */
        0x910083fd, /* 2 add x29, sp, #32 */
        0xd63f0040, /* 3 blr x2 */
        0xa9427bfd, /* 4 ldp x29, x30, [sp, #32] */
        0x9100c3ff, /* 5 add sp, sp, #48 */
        0xd65f0bff, /* 6 retaa */
    };
    assert_untouched(FRAME_AT(code, 0));
    assert_by_sp(FRAME_AT(code, 1), 48, IN_REGISTER, IN_REGISTER);
    assert_by_sp(FRAME_AT(code, 2), 48, 40, 32);
    assert_kind(FRAME_AT(code, 3), CODE_FRAME_BY_POINTER);
    assert_kind(FRAME_AT(code, 4), CODE_FRAME_BY_POINTER);
    assert_by_sp(FRAME_AT(code, 5), 48, 40, 32);
    assert_untouched(FRAME_AT(code, 6));
}

/* As JavaScript's compilers have it: the end takes the arguments off the caller's stack. */
static void test_a_record_below_other_registers(void **state)
{
    (void)state;
    static const uint32_t code[] = {
        0xa9be6fe1, /* 0 stp x1, x27, [sp, #-32]! */
        0xa9017bfd, /* 1 stp x29, x30, [sp, #16] */
        0x910043fd, /* 2 add x29, sp, #16 */
        0xd10043ff, /* 3 sub sp, sp, #16 */
        0x910003bf, /* 4 mov sp, x29 */
        0xa8c17bfd, /* 5 ldp x29, x30, [sp], #16 */
        0x8b226fff, /* 6 add sp, sp, x2, lsl #3 */
        0xd65f03c0, /* 7 ret */
    };
    assert_by_sp(FRAME_AT(code, 1), 32, IN_REGISTER, IN_REGISTER);
    assert_by_sp(FRAME_AT(code, 2), 32, 24, 16);
    for (size_t i = 3; i <= 5; i++)
        assert_kind(FRAME_AT(code, i), CODE_FRAME_BY_POINTER);
    assert_untouched(FRAME_AT(code, 6));
    assert_kind(FRAME_AT(code, 7), CODE_FRAME_LOST);
}

static void test_without_a_record(void **state)
{
    (void)state;
    static const uint32_t leaf[] = {
        0xd503245f, /* 0 bti c */
        0xd10043ff, /* 1 sub sp, sp, #16 */
        0xb9000fe0, /* 2 str w0, [sp, #12] */
        0x910043ff, /* 3 add sp, sp, #16 */
        0xd65f03c0, /* 4 ret */
    };
    static const uint32_t saves_link[] = {
        0xf81f0ffe, /* 0 str x30, [sp, #-16]! */
        0xd63f0040, /* 1 blr x2 */
        0xf84107fe, /* 2 ldr x30, [sp], #16 */
        0xd65f03c0, /* 3 ret */
    };
    for (size_t i = 0; i <= 4; i++)
        assert_by_sp(FRAME_AT(leaf, i), i == 2 || i == 3 ? 16 : 0, IN_REGISTER, IN_REGISTER);
    assert_untouched(FRAME_AT(saves_link, 0));
    assert_by_sp(FRAME_AT(saves_link, 1), 16, 0, IN_REGISTER);
    assert_by_sp(FRAME_IN_CALL(saves_link, 1), 16, 0, IN_REGISTER);
    assert_by_sp(FRAME_AT(saves_link, 2), 16, 0, IN_REGISTER);
    assert_untouched(FRAME_AT(saves_link, 3));
}

/* The frame pointer is still the caller's, and would lead past it. */
static void test_a_return_address_that_is_lost(void **state)
{
    (void)state;
    static const uint32_t moved[] = {
        0xaa1e03e9, /* 0 mov x9, x30 */
        0xd63f0040, /* 1 blr x2 */
        0xd65f0120, /* 2 ret x9 */
    };
    assert_untouched(FRAME_AT(moved, 1));
    assert_kind(FRAME_IN_CALL(moved, 1), CODE_FRAME_LOST);
    assert_kind(FRAME_AT(moved, 2), CODE_FRAME_LOST);
    /* What is below the stack pointer is no longer kept. */
    static const uint32_t released[] = {
        0xf81f0ffe, /* 0 str x30, [sp, #-16]! */
        0x910043ff, /* 1 add sp, sp, #16 */
        0xd10043ff, /* 2 sub sp, sp, #16 */
        0xd63f0040, /* 3 blr x2 */
    };
    assert_by_sp(FRAME_AT(released, 3), 16, IN_REGISTER, IN_REGISTER);
    assert_kind(FRAME_IN_CALL(released, 3), CODE_FRAME_LOST);
    /* 0 str x30, [sp, #-16]!; 1 str x0, [sp]; 2 blr x2 */
    static const uint32_t overwritten[] = {0xf81f0ffe, 0xf90003e0, 0xd63f0040};
    assert_kind(FRAME_IN_CALL(overwritten, 2), CODE_FRAME_LOST);
}

/* The register is used for something else. */
static void test_a_frame_pointer_that_is_none(void **state)
{
    (void)state;
    static const uint32_t saved[] = {
        0xa9bf7bfd, /* 0 stp x29, x30, [sp, #-16]! */
        0xaa0003fd, /* 1 mov x29, x0 */
        0xd63f0040, /* 2 blr x2 */
    };
    assert_by_sp(FRAME_IN_CALL(saved, 2), 16, 8, 0);
    /* 0 mov x29, x0; 1 nop */
    static const uint32_t unsaved[] = {0xaa0003fd, 0xd503201f};
    assert_by_sp(FRAME_AT(unsaved, 1), 0, IN_REGISTER, NOWHERE);
    /* No record is where it points: 0 stp x29, x30, [sp, #-32]!; 1 add x29, sp, #16; 2 blr x2 */
    static const uint32_t elsewhere[] = {0xa9be7bfd, 0x910043fd, 0xd63f0040};
    assert_by_sp(FRAME_AT(elsewhere, 2), 32, 8, 0);
    /* Nor here: 0 stp x30, x29, [sp, #-16]!; 1 mov x29, sp; 2 blr x2 */
    static const uint32_t reversed[] = {0xa9bf77fe, 0x910003fd, 0xd63f0040};
    assert_by_sp(FRAME_AT(reversed, 2), 16, 0, 8);
    /* 0 sub sp, sp, #32; 1 str x29, [sp]; 2 str x30, [sp, #16]; 3 mov x29, sp; 4 blr x2 */
    static const uint32_t apart[] = {0xd10083ff, 0xf90003fd, 0xf9000bfe, 0x910003fd, 0xd63f0040};
    assert_by_sp(FRAME_AT(apart, 4), 32, 16, 0);
}

static void test_loops(void **state)
{
    (void)state;
    static const uint32_t from_its_end[] = {
        0xf81f0ffe, /* 0 str x30, [sp, #-16]! */
        0x14000002, /* 1 b 3 */
        0xd503201f, /* 2 nop */
        0x35ffffe0, /* 3 cbnz w0, 2 */
        0xf84107fe, /* 4 ldr x30, [sp], #16 */
        0xd65f03c0, /* 5 ret */
    };
    static const uint32_t behind_a_call[] = {
        0xf81f0ffe, /* 0 str x30, [sp, #-16]! */
        0xd63f0040, /* 1 blr x2 */
        0xd503201f, /* 2 nop */
        0xd503201f, /* 3 nop */
        0x35ffffe0, /* 4 cbnz w0, 3 */
        0xf84107fe, /* 5 ldr x30, [sp], #16 */
        0xd65f03c0, /* 6 ret */
    };
    for (size_t i = 1; i <= 4; i++) {
        assert_by_sp(FRAME_AT(from_its_end, i), 16, 0, IN_REGISTER);
        assert_by_sp(FRAME_AT(behind_a_call, i + 1), 16, 0, IN_REGISTER);
    }
    assert_untouched(FRAME_AT(from_its_end, 5));
    assert_untouched(FRAME_AT(behind_a_call, 6));
    /* One that makes room each time: 0 sub sp, sp, #16; 1 cbnz w0, 0; 2 ret */
    static const uint32_t grows[] = {0xd10043ff, 0x35ffffe0, 0xd65f03c0};
    for (size_t i = 0; i <= 2; i++)
        assert_kind(FRAME_AT(grows, i), CODE_FRAME_LOST);
}

static void test_behind_a_call_that_does_not_return(void **state)
{
    (void)state;
    static const uint32_t code[] = {
        0x34000080, /* 0 cbz w0, 4 */
        0xf81f0ffe, /* 1 str x30, [sp, #-16]! */
        0xd63f0040, /* 2 blr x2 */
        0xd503201f, /* 3 nop */
        0xd65f03c0, /* 4 ret */
    };
    assert_by_sp(FRAME_AT(code, 3), 16, 0, IN_REGISTER);
    assert_untouched(FRAME_AT(code, 4));
    /* What jumps there comes after it: 0 cbnz w0, 4; 1 str x30, [sp, #-16]!; 2 blr x2; 3 ret; 4 b 3
     */
    static const uint32_t back[] = {0x35000080, 0xf81f0ffe, 0xd63f0040, 0xd65f03c0, 0x17ffffff};
    assert_untouched(FRAME_AT(back, 3));
}

static void test_ways_that_disagree(void **state)
{
    (void)state;
    /* 0 cbz w0, 2; 1 sub sp, sp, #16; 2 nop; 3 ret */
    static const uint32_t code[] = {0x34000040, 0xd10043ff, 0xd503201f, 0xd65f03c0};
    assert_by_sp(FRAME_AT(code, 1), 0, IN_REGISTER, IN_REGISTER);
    assert_kind(FRAME_AT(code, 2), CODE_FRAME_LOST);
    assert_kind(FRAME_AT(code, 3), CODE_FRAME_LOST);
    static const uint32_t saves_on_one[] = {
        0xd10043ff, /* 0 sub sp, sp, #16 */
        0x34000060, /* 1 cbz w0, 4 */
        0xf90003fe, /* 2 str x30, [sp] */
        0x34000041, /* 3 cbz w1, 5 */
        0xd503201f, /* 4 nop */
        0xd63f0040, /* 5 blr x2 */
    };
    assert_by_sp(FRAME_AT(saves_on_one, 3), 16, 0, IN_REGISTER);
    for (size_t i = 4; i <= 5; i++)
        assert_by_sp(FRAME_AT(saves_on_one, i), 16, IN_REGISTER, IN_REGISTER);
    assert_kind(FRAME_IN_CALL(saves_on_one, 5), CODE_FRAME_LOST);
}

static void test_room_of_variable_size(void **state)
{
    (void)state;
    static const uint32_t code[] = {
        0xa9bf7bfd, /* 0 stp x29, x30, [sp, #-16]! */
        0x910003fd, /* 1 mov x29, sp */
        0xcb2163ff, /* 2 sub sp, sp, x1 */
        0x910003bf, /* 3 mov sp, x29 */
        0xa8c17bfd, /* 4 ldp x29, x30, [sp], #16 */
        0xd65f03c0, /* 5 ret */
    };
    for (size_t i = 2; i <= 4; i++)
        assert_kind(FRAME_AT(code, i), CODE_FRAME_BY_POINTER);
    assert_untouched(FRAME_AT(code, 5));
    /* A large frame, and an array in it. */
    static const uint32_t large[] = {
        0xd28a000c, /* 0 mov x12, #0x5000 */
        0xcb2c63ff, /* 1 sub sp, sp, x12 */
        0xa9007bfd, /* 2 stp x29, x30, [sp] */
        0x910003fd, /* 3 mov x29, sp */
        0xcb2163ff, /* 4 sub sp, sp, x1 */
        0xa9007fff, /* 5 stp xzr, xzr, [sp] */
        0x910003bf, /* 6 mov sp, x29 */
        0xa9407bfd, /* 7 ldp x29, x30, [sp] */
        0x8b2c63ff, /* 8 add sp, sp, x12 */
        0xd65f03c0, /* 9 ret */
    };
    assert_untouched(FRAME_AT(large, 1));
    for (size_t i = 2; i <= 3; i++)
        assert_kind(FRAME_AT(large, i), CODE_FRAME_LOST);
    for (size_t i = 4; i <= 7; i++)
        assert_kind(FRAME_AT(large, i), CODE_FRAME_BY_POINTER);
    for (size_t i = 8; i <= 9; i++)
        assert_kind(FRAME_AT(large, i), CODE_FRAME_LOST);
    static const uint32_t changes[] = {
        0xcb2163ff, /* sub sp, sp, x1 */
        0x9100003f, /* mov sp, x1 */
        0x927cec1f, /* and sp, x0, #-16 */
        0x910043ff, /* add sp, sp, #16: more than there is */
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const uint32_t alone[] = {changes[i], 0xd503201f}; /* nop */
        assert_kind(FRAME_AT(alone, 1), CODE_FRAME_LOST);
    }
}

static void test_what_can_not_be_told(void **state)
{
    (void)state;
    static const uint32_t ends[] = {
        0xd65f03c0, /* ret */
        0xd61f0060, /* br x3 */
        0x14000002, /* b, over the next one */
        0xd4200020, /* brk #1 */
        0xd4a00001, /* dcps1 */
        0x00000000, /* udf #0 */
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const uint32_t code[] = {ends[i], 0xd503201f}; /* nop */
        assert_untouched(FRAME_AT(code, 0));
        assert_kind(FRAME_AT(code, 1), CODE_FRAME_UNKNOWN);
    }
    static const uint32_t nops[] = {0xd503201f, 0xd503201f};
    assert_kind(FRAME_AT(nops, 2), CODE_FRAME_UNKNOWN);
    assert_kind(code_frame_at((const uint8_t *)nops, 7, 4), CODE_FRAME_UNKNOWN);
    assert_kind(code_frame_at((const uint8_t *)nops, 0, 0), CODE_FRAME_UNKNOWN);
    /* Too many depths to follow. */
    uint32_t deep[200];
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++)
        deep[i] = 0xd10043ff; /* sub sp, sp, #16 */
    assert_kind(FRAME_AT(deep, 5), CODE_FRAME_UNKNOWN);
    assert_by_sp(code_frame_at((const uint8_t *)deep, 400, 20), 80, IN_REGISTER, IN_REGISTER);
}

/* The first stub. The others have their caller in the link register. */
static void test_stubs(void **state)
{
    (void)state;
    static const uint32_t first[] = {
        0xa9bf7bf0, /* 0 stp x16, x30, [sp, #-16]! */
        0x90000010, /* 1 adrp x16, 0 */
        0xf9400211, /* 2 ldr x17, [x16] */
        0x91000210, /* 3 add x16, x16, #0 */
        0xd61f0220, /* 4 br x17 */
    };
    for (size_t i = 0; i < 5; i++) {
        uint8_t code[CODE_STUB_BYTES] = {0};
        memcpy(code + CODE_STUB_BYTES_BEFORE - 4 * i, first, sizeof first);
        if (i)
            assert_by_sp(code_frame_in_stub(code), 16, 8, IN_REGISTER);
        else
            assert_kind(code_frame_in_stub(code), CODE_FRAME_UNKNOWN);
    }
    uint8_t other[CODE_STUB_BYTES] = {0};
    memcpy(other + CODE_STUB_BYTES_BEFORE - 4, first + 1, sizeof first - 4);
    assert_kind(code_frame_in_stub(other), CODE_FRAME_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_instruction),
        cmocka_unit_test(test_a_record_above_other_room),
        cmocka_unit_test(test_a_record_below_other_registers),
        cmocka_unit_test(test_without_a_record),
        cmocka_unit_test(test_a_return_address_that_is_lost),
        cmocka_unit_test(test_a_frame_pointer_that_is_none),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_behind_a_call_that_does_not_return),
        cmocka_unit_test(test_ways_that_disagree),
        cmocka_unit_test(test_room_of_variable_size),
        cmocka_unit_test(test_what_can_not_be_told),
        cmocka_unit_test(test_stubs),
    };
    return cmocka_run_group_tests_name("code_frame", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif
