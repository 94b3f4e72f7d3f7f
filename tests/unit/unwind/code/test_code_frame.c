/* Where functions have their return address, by their instructions. */
#include "unit.h"
#include "unwind/code/code_frame.h"

#ifdef __x86_64__

/* A function that saves rbx, calls where its argument is not 0, and has a second way out:
 *  0 push %rbx; 1 test %edi,%edi; 3 je 17; 5 sub $16,%rsp; 9 call; 14 add $16,%rsp (4 bytes: 18);
 * 18 pop %rbx; 19 ret; 20 pop %rbx; 21 ret */
static const uint8_t plain[] = {0x53, 0x85, 0xff, 0x74, 0x0f, 0x48, 0x83, 0xec, 0x10, 0xe8, 0,
                                0,    0,    0,    0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3, 0x5b, 0xc3};

static void check_by_sp(const uint8_t *code, size_t bytes, size_t at, int32_t return_address)
{
    struct code_frame frame = code_frame_at(code, bytes, at);
    assert_int_equal(frame.kind, CODE_FRAME_BY_SP);
    assert_int_equal(frame.return_address, return_address);
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
    /* In the middle of the call, as a return address less one is. */
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

/* Its caller's is saved with others, and the register used for something else. */
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

/* As compiled Java has it, with frame pointers and without:
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
    /* Outside of the frame nothing is saved: 24(%rsp) is where the return address is. */
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
        assert_int_equal(code_frame_at(code, sizeof code, at).kind, CODE_FRAME_REALIGNED);
    check_unknown(code, sizeof code, 27);
    /* A frame pointer that is set up first is one. */
    static const uint8_t after[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0x90};
    assert_int_equal(code_frame_at(after, sizeof after, 8).kind, CODE_FRAME_BY_POINTER);
}

static void test_what_can_not_be_told(void **state)
{
    (void)state;
    static const uint8_t behind_ret[] = {0xc3, 0x90, 0x90};
    check_unknown(behind_ret, sizeof behind_ret, 1);
    /* mov %rsi,%rsp; sub %rax,%rsp; pop %rsp: another stack, or how far down. */
    static const uint8_t writes[][5] = {{0x48, 0x89, 0xf4, 0x90, 0x90},
                                        {0x48, 0x29, 0xc4, 0x90, 0x90},
                                        {0x5c, 0x90, 0x90, 0x90, 0x90}};
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
        check_unknown(writes[i], 5, 4);
    /* rbp is overwritten before it was saved; pop behind the beginning; not an instruction. */
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

/* Checks the instructions that begin at `begins`, of which each has pushed that many words. */
static void check_stubs(const uint8_t *stubs, size_t bytes, const uint8_t (*begins)[2],
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct code_frame frame = frame_in_stub(stubs, bytes, begins[i][0]);
        assert_int_equal(frame.kind, CODE_FRAME_BY_SP);
        assert_int_equal(frame.return_address, 8 * begins[i][1]);
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

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif
