#include "unit.h"
#include "unwind/code/prologue.h"

#ifdef __x86_64__

#define CODE(...)                                                                                  \
    (const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[])                                        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* The first candidate; the count where there is none. */
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

/* What an optimizing compiler puts between: mov %edi,%ebx; xor %eax,%eax. */
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
    /* In that call itself they are there. */
    assert_int_equal(first_of(CODE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x6a, 0x01, 0x6a,
                                   0x02, 0xe8, 0, 0, 0)),
                     0x20);
}

/* An end in the middle: pop %rbx; pop %rbp; ret; and then code that is jumped to. */
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

/* sub %rax,%rsp: an array of variable size. What was before is all that can be said. */
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

#else

int main(void)
{
    return 77; /* skipped: nothing is read on this architecture */
}

#endif
