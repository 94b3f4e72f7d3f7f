/* Calls and function entries in machine code of the architecture that is built for. */
#include "unit.h"

#include "unwind/code/calls.h"

#include <string.h>

#ifdef __x86_64__

#define RETURN_ADDRESS 0x401000u

/* What stands right before the return address. */
static enum call_form kind_of(const uint8_t *code, size_t bytes, uint64_t *target)
{
    uint8_t before[CALL_BYTES_MAX];
    memset(before, 0x90, sizeof before);
    memcpy(before + sizeof before - bytes, code, bytes);
    return call_before(before, RETURN_ADDRESS, target);
}
#define KIND(target, ...)                                                                          \
    kind_of((const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[]){__VA_ARGS__}, target)

static void test_direct_calls(void **state)
{
    (void)state;
    uint64_t target = 0;
    assert_int_equal(KIND(&target, 0xe8, 0x10, 0, 0, 0), CALL_DIRECT);
    assert_int_equal(target, RETURN_ADDRESS + 0x10);
    assert_int_equal(KIND(&target, 0xe8, 0xf0, 0xff, 0xff, 0xff), CALL_DIRECT);
    assert_int_equal(target, RETURN_ADDRESS - 0x10);
}

static void test_indirect_calls(void **state)
{
    (void)state;
    uint64_t target = 0;
    assert_int_equal(KIND(&target, 0xff, 0xd0), CALL_INDIRECT);             /* *%rax */
    assert_int_equal(KIND(&target, 0x41, 0xff, 0xd4), CALL_INDIRECT);       /* *%r12 */
    assert_int_equal(KIND(&target, 0xff, 0x10), CALL_INDIRECT);             /* *(%rax) */
    assert_int_equal(KIND(&target, 0xff, 0x50, 0x18), CALL_INDIRECT);       /* *0x18(%rax) */
    assert_int_equal(KIND(&target, 0xff, 0x14, 0xc3), CALL_INDIRECT);       /* *(%rbx,%rax,8) */
    assert_int_equal(KIND(&target, 0xff, 0x15, 1, 2, 3, 4), CALL_INDIRECT); /* *x(%rip) */
    assert_int_equal(KIND(&target, 0xff, 0x94, 0xc3, 1, 2, 3, 4), CALL_INDIRECT); /* *x(%rbx,...) */
}

static void test_no_calls(void **state)
{
    (void)state;
    uint64_t target = 0;
    assert_int_equal(KIND(&target, 0x90), CALL_NONE);
    assert_int_equal(KIND(&target, 0xff, 0xe0), CALL_NONE);             /* jmp *%rax */
    assert_int_equal(KIND(&target, 0xff, 0x30), CALL_NONE);             /* push (%rax) */
    assert_int_equal(KIND(&target, 0xe9, 0x10, 0, 0, 0), CALL_NONE);    /* jmp */
    assert_int_equal(KIND(&target, 0xff, 0x15, 1, 2, 3), CALL_NONE);    /* one byte short */
    assert_int_equal(KIND(&target, 0xff, 0x25, 1, 2, 3, 4), CALL_NONE); /* jmp *x(%rip) */
}

static void test_jumps(void **state)
{
    (void)state;
    static const uint8_t jmp[JUMP_BYTES] = {0xe9, 0x10},
                         je[JUMP_BYTES] = {0x0f, 0x84, 0xf0, 0xff, 0xff, 0xff};
    static const uint8_t call[JUMP_BYTES] = {0xe8, 0x10}, set[JUMP_BYTES] = {0x0f, 0x94, 0xc0};
    uint64_t target = 0;
    assert_true(jump_is_at(jmp, 0x401000, &target));
    assert_int_equal(target, 0x401000 + 5 + 0x10);
    assert_true(jump_is_at(je, 0x401000, &target));
    assert_int_equal(target, 0x401000 + 6 - 0x10);
    assert_false(jump_is_at(call, 0x401000, &target));
    assert_false(jump_is_at(set, 0x401000, &target));
}

static void test_system_calls(void **state)
{
    (void)state;
    static const uint8_t syscall[] = {0x90, 0x90, 0x0f, 0x05}, other[] = {0x0f, 0x05, 0x0f, 0x0b};
    assert_int_equal(system_call_before(syscall), 2);
    assert_int_equal(system_call_before(other), 0);
}

static void test_calls_that_make_threads(void **state)
{
    (void)state;
    uint8_t before[CLONE_BYTES] = {0x31, 0xc0, 0xb0, 56}; /* musl: xor %eax,%eax; mov $56,%al */
    static const uint8_t clone3[] = {0xb8, 0xb3, 1, 0, 0, 0x0f, 0x05};
    static const uint8_t nanosleep[] = {0xb8, 35, 0, 0, 0, 0x0f, 0x05};
    memcpy(before + CLONE_BYTES - 2, "\x0f\x05", 2);
    assert_true(system_call_is_clone(before));
    memset(before, 0, sizeof before);
    memcpy(before + CLONE_BYTES - sizeof nanosleep, nanosleep, sizeof nanosleep);
    assert_false(system_call_is_clone(before));
    memcpy(before + CLONE_BYTES - sizeof clone3, clone3, sizeof clone3);
    assert_true(system_call_is_clone(before));
    before[CLONE_BYTES - 1] = 0x0b; /* not a system call */
    assert_false(system_call_is_clone(before));
}

static void test_returns(void **state)
{
    (void)state;
    static const uint8_t returns[][RETURN_BYTES] = {{0xc3, 0x90}, {0xf3, 0xc3}, {0xf2, 0xc3}};
    static const uint8_t others[][RETURN_BYTES] = {{0x90, 0xc3}, {0xf3, 0x90}, {0xc2, 0x08}};
    for (size_t i = 0; i < 3; i++) {
        assert_true(return_is_at(returns[i]));
        assert_false(return_is_at(others[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_returns),
        cmocka_unit_test(test_direct_calls),
        cmocka_unit_test(test_indirect_calls),
        cmocka_unit_test(test_no_calls),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_system_calls),
        cmocka_unit_test(test_calls_that_make_threads),
    };
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif
