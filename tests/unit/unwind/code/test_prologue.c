#include "unit.h"
#include "unwind/code/prologue.h"

#ifdef __aarch64__
typedef uint32_t code_unit; /* an instruction */
#else
typedef uint8_t code_unit;
#endif

#define CODE(...)                                                                                  \
    (const uint8_t *)(const code_unit[]){__VA_ARGS__}, sizeof(const code_unit[])                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* The first candidate; the count if there is none. */
static uint64_t first_of(const uint8_t *code, size_t bytes)
{
    uint64_t candidates[PROLOGUE_CANDIDATES_MAX] = {0};
    size_t count = prologue_frame_bytes(code, bytes, candidates);
    assert_in_range(count, 1, PROLOGUE_CANDIDATES_MAX);
    return candidates[0];
}

static bool holds(const uint8_t *code, size_t bytes, uint64_t wanted)
{
    uint64_t candidates[PROLOGUE_CANDIDATES_MAX];
    size_t count = prologue_frame_bytes(code, bytes, candidates);
    for (size_t i = 0; i < count; i++) {
        if (candidates[i] == wanted)
            return true;
    }
    return false;
}

#ifdef __x86_64__

static void test_plain(void **state)
{
    (void)state;
    /* push %rbp; mov %rsp,%rbp; push %r12; push %rbx; sub $0x20,%rsp */
    assert_int_equal(
        first_of(CODE(0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x53, 0x48, 0x83, 0xec, 0x20)), 0x30);
    /* endbr64 before, and a sub of 32 bits */
    assert_int_equal(first_of(CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec,
                                   0x00, 0x10, 0x00, 0x00)),
                     0x1000);
    /* nothing below it */
    assert_int_equal(first_of(CODE(0x55, 0x48, 0x89, 0xe5)), 0);
}

/* An optimizing compiler puts other instructions between: mov %edi,%ebx; xor %eax,%eax. */
static void test_other_instructions_between(void **state)
{
    (void)state;
    assert_int_equal(first_of(CODE(0x55, 0x31, 0xc0, 0x48, 0x89, 0xe5, 0x53, 0x89, 0xfb, 0x48, 0x83,
                                   0xec, 0x18)),
                     0x20);
}

/* Arguments pushed for one call are gone at the next: push; push; call; add $16,%rsp; call. */
static void test_arguments_of_an_earlier_call(void **state)
{
    (void)state;
    assert_int_equal(
        first_of(CODE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x6a, 0x01, 0x6a, 0x02, 0xe8,
                      0, 0, 0, 0, 0x48, 0x83, 0xc4, 0x10, 0xe8, 0, 0, 0, 0)),
        0x10);
    /* During that call they are still there. */
    assert_int_equal(first_of(CODE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x6a, 0x01, 0x6a,
                                   0x02, 0xe8, 0, 0, 0)),
                     0x20);
}

/* An epilogue in the middle: pop %rbx; pop %rbp; ret; and then code that is reached by jumps. */
static void test_code_behind_an_end(void **state)
{
    (void)state;
    assert_int_equal(first_of(CODE(0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x08, 0x48, 0x83,
                                   0xc4, 0x08, 0x5b, 0x5d, 0xc3, 0x31, 0xc0)),
                     0x10);
    /* lea -0x8(%rbp),%rsp; leave; ret */
    assert_true(holds(CODE(0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x28, 0x48, 0x8d, 0x65,
                           0xf8, 0xc9, 0xc3, 0x90),
                      0x30));
}

static void test_no_frame_pointer(void **state)
{
    (void)state;
    uint64_t candidates[PROLOGUE_CANDIDATES_MAX];
    /* push %rbx; sub $0x20,%rsp */
    assert_int_equal(prologue_frame_bytes(CODE(0x53, 0x48, 0x83, 0xec, 0x20), candidates), 0);
    assert_int_equal(prologue_frame_bytes(CODE(0x06, 0x06), candidates), 0); /* no instruction */
    assert_int_equal(prologue_frame_bytes((const uint8_t *)"", 0, candidates), 0);
}

/* sub %rax,%rsp: a variable-length array. Only the size before it is known. */
static void test_room_of_variable_size(void **state)
{
    (void)state;
    assert_int_equal(first_of(CODE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x48, 0x29, 0xc4,
                                   0x48, 0x83, 0xec, 0x40)),
                     0x10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_other_instructions_between),
        cmocka_unit_test(test_arguments_of_an_earlier_call),
        cmocka_unit_test(test_code_behind_an_end),
        cmocka_unit_test(test_no_frame_pointer),
        cmocka_unit_test(test_room_of_variable_size),
    };
    return cmocka_run_group_tests_name("prologue", tests, NULL, NULL);
}

#elif defined __aarch64__

static void test_plain(void **state)
{
    (void)state;
    assert_int_equal(first_of(CODE(0xa9bd7bfd,   /* stp x29, x30, [sp, #-48]! */
                                   0x910003fd,   /* mov x29, sp */
                                   0xd10083ff)), /* sub sp, sp, #32 */
                     0x20);
    assert_int_equal(first_of(CODE(0xd503245f,   /* bti c */
                                   0xa9bd7bfd,   /* stp x29, x30, [sp, #-48]! */
                                   0x910003fd,   /* mov x29, sp */
                                   0xd14007ff)), /* sub sp, sp, #1, lsl #12 */
                     0x1000);
    /* nothing below it: stp x29, x30, [sp, #-48]!; mov x29, sp */
    assert_int_equal(first_of(CODE(0xa9bd7bfd, 0x910003fd)), 0);
    assert_int_equal(first_of(CODE(0xd100c3ff,   /* sub sp, sp, #48 */
                                   0xa9027bfd,   /* stp x29, x30, [sp, #32] */
                                   0x910083fd)), /* add x29, sp, #32 */
                     0x20);
    assert_int_equal(first_of(CODE(0xd28a000c,   /* mov x12, #0x5000 */
                                   0xcb2c63ff,   /* sub sp, sp, x12 */
                                   0xa9007bfd,   /* stp x29, x30, [sp] */
                                   0x910003fd)), /* mov x29, sp */
                     0);
}

/* What an optimizing compiler puts between: mov w19, w0; eor w0, w0, w0. */
static void test_other_instructions_between(void **state)
{
    (void)state;
    assert_int_equal(
        first_of(CODE(0xa9bd7bfd, 0x2a0003f3, 0x910003fd, 0x4a000000, 0xd10083ff, 0x2a0003f3)),
        0x20);
}

/* An end in the middle, and then code that is jumped to. */
static void test_code_behind_an_end(void **state)
{
    (void)state;
    assert_int_equal(first_of(CODE(0xa9bd7bfd,   /* stp x29, x30, [sp, #-48]! */
                                   0x910003fd,   /* mov x29, sp */
                                   0xd10083ff,   /* sub sp, sp, #32 */
                                   0x910003bf,   /* mov sp, x29 */
                                   0xa8c37bfd,   /* ldp x29, x30, [sp], #48 */
                                   0xd65f03c0,   /* ret */
                                   0x2a0003f3)), /* mov w19, w0 */
                     0x20);
    /* Within the end, the likeliest is not all that may be. */
    assert_true(holds(CODE(0xa9bd7bfd, 0x910003fd, 0xd10083ff, 0x910003bf), 0));
    assert_true(holds(CODE(0xa9bd7bfd, 0x910003fd, 0xd10083ff, 0x910003bf), 0x20));
}

/* For the arguments of one call, which are gone at the next: sub sp, sp, #16; blr x2; add sp, sp,
 * #16 */
static void test_arguments_of_an_earlier_call(void **state)
{
    (void)state;
    assert_int_equal(
        first_of(CODE(0xa9bd7bfd, 0x910003fd, 0xd10083ff, 0xd10043ff, 0xd63f0040, 0x910043ff)),
        0x20);
}

static void test_no_frame_pointer(void **state)
{
    (void)state;
    uint64_t candidates[PROLOGUE_CANDIDATES_MAX];
    /* str x30, [sp, #-32]!; sub sp, sp, #32 */
    assert_int_equal(prologue_frame_bytes(CODE(0xf81e0ffe, 0xd10083ff), candidates), 0);
    /* It is set below the stack pointer: str x30, [sp, #-32]!; sub x29, sp, #8 */
    assert_int_equal(prologue_frame_bytes(CODE(0xf81e0ffe, 0xd10023fd), candidates), 0);
    /* Half an instruction: stp x29, x30, [sp, #-48]!; mov x29, sp */
    assert_int_equal(
        prologue_frame_bytes((const uint8_t *)(const uint32_t[]){0xa9bd7bfd, 0x910003fd}, 6,
                             candidates),
        0);
    assert_int_equal(prologue_frame_bytes((const uint8_t *)"", 0, candidates), 0);
}

/* An array of variable size. What was before is all that can be said. */
static void test_room_of_variable_size(void **state)
{
    (void)state;
    assert_int_equal(first_of(CODE(0xa9bd7bfd,   /* stp x29, x30, [sp, #-48]! */
                                   0x910003fd,   /* mov x29, sp */
                                   0xd10043ff,   /* sub sp, sp, #16 */
                                   0xcb2163ff,   /* sub sp, sp, x1 */
                                   0xd10083ff)), /* sub sp, sp, #32 */
                     0x10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_other_instructions_between),
        cmocka_unit_test(test_code_behind_an_end),
        cmocka_unit_test(test_arguments_of_an_earlier_call),
        cmocka_unit_test(test_no_frame_pointer),
        cmocka_unit_test(test_room_of_variable_size),
    };
    return cmocka_run_group_tests_name("prologue", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif
