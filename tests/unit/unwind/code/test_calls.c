/* Calls and function entries in machine code of the target architecture. */
#include "unit.h"

#include "unwind/code/calls.h"

#include <string.h>

#ifdef __x86_64__

#define RETURN_ADDRESS 0x401000u

/* The form of the call right before the return address. */
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

#elif defined __aarch64__

#define RETURN_ADDRESS 0x401000u

static enum call_form kind_of(uint32_t instruction, uint64_t *target)
{
    uint8_t before[CALL_BYTES_MAX] = {0};
    memcpy(before + sizeof before - sizeof instruction, &instruction, sizeof instruction);
    return call_before(before, RETURN_ADDRESS, target);
}

static void test_calls(void **state)
{
    (void)state;
    uint64_t target = 0;
    assert_int_equal(kind_of(0x94000010, &target), CALL_DIRECT); /* bl .+0x40 */
    assert_int_equal(target, RETURN_ADDRESS - 4 + 0x40);
    assert_int_equal(kind_of(0x97fffffe, &target), CALL_DIRECT); /* bl .-8 */
    assert_int_equal(target, RETURN_ADDRESS - 4 - 8);
    assert_int_equal(kind_of(0xd63f0020, &target), CALL_INDIRECT); /* blr x1 */
    assert_int_equal(kind_of(0xd73f0822, &target), CALL_INDIRECT); /* blraa x1, x2 */
    assert_int_equal(kind_of(0xd63f0c7f, &target), CALL_INDIRECT); /* blrabz x3 */
    assert_int_equal(kind_of(0xd61f0020, &target), CALL_NONE);     /* br x1 */
    assert_int_equal(kind_of(0x14000010, &target), CALL_NONE);     /* b .+0x40 */
    assert_int_equal(kind_of(0xd65f03c0, &target), CALL_NONE);     /* ret */
    assert_int_equal(kind_of(0xd503201f, &target), CALL_NONE);     /* nop */
}

/* Bytes of an instruction and the next one may look like a call. */
static void test_calls_are_aligned(void **state)
{
    (void)state;
    const uint8_t before[CALL_BYTES_MAX] = {[CALL_BYTES_MAX - 1] = 0x94};
    uint64_t target;
    assert_int_equal(call_before(before, RETURN_ADDRESS, &target), CALL_DIRECT);
    assert_int_equal(call_before(before, RETURN_ADDRESS + 1, &target), CALL_NONE);
}

static bool jumps(uint32_t instruction, uint64_t *target)
{
    uint8_t code[JUMP_BYTES] = {0};
    memcpy(code, &instruction, sizeof instruction);
    return jump_is_at(code, 0x401000, target);
}

static void test_jumps(void **state)
{
    (void)state;
    uint64_t target = 0;
    assert_true(jumps(0x14000002, &target)); /* b .+8 */
    assert_int_equal(target, 0x401008);
    assert_true(jumps(0x54ffffc1, &target)); /* b.ne .-8 */
    assert_int_equal(target, 0x401000 - 8);
    assert_false(jumps(0x94000010, &target)); /* bl */
    assert_false(jumps(0xd61f0060, &target)); /* br x3 */
    assert_false(jumps(0x34000060, &target)); /* cbz: never to another function */
}

static void test_system_calls(void **state)
{
    (void)state;
    static const uint8_t svc[SYSTEM_CALL_BYTES_MAX] = {0x01, 0x00, 0x00, 0xd4},
                         hvc[SYSTEM_CALL_BYTES_MAX] = {0x02, 0x00, 0x00, 0xd4};
    assert_int_equal(system_call_before(svc), 4);
    assert_int_equal(system_call_before(hvc), 0);
}

/* mov x8, #number; nop; svc #0 */
static bool makes_thread(uint32_t number, uint32_t last)
{
    const uint32_t code[] = {0xd2800008u | number << 5, 0xd503201f, last};
    uint8_t before[CLONE_BYTES] = {0};
    memcpy(before + sizeof before - sizeof code, code, sizeof code);
    return system_call_is_clone(before);
}

static void test_calls_that_make_threads(void **state)
{
    (void)state;
    assert_true(makes_thread(220, 0xd4000001));
    assert_true(makes_thread(435, 0xd4000001));
    assert_false(makes_thread(101, 0xd4000001)); /* nanosleep */
    assert_false(makes_thread(220, 0xd503201f)); /* not a system call */
}

static void test_the_end_of_a_thread(void **state)
{
    (void)state;
    const uint32_t ends[] = {0xd503201f, 0xd2800ba8, 0xd4000001}; /* nop; mov x8, #93; svc #0 */
    uint8_t after[THREAD_END_BYTES] = {0};
    assert_false(call_is_last(after));
    memcpy(after, ends, sizeof ends < sizeof after ? sizeof ends : sizeof after);
    assert_true(call_is_last(after));
}

static void test_the_end_of_a_context(void **state)
{
    (void)state;
    static const uint8_t mov[CONTEXT_END_BYTES] = {0xe0, 0x03, 0x13, 0xaa}, /* mov x0, x19 */
        other[CONTEXT_END_BYTES] = {0xe0, 0x03, 0x14, 0xaa};
    assert_true(call_is_context_end(mov));
    assert_false(call_is_context_end(other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_calls_are_aligned),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_system_calls),
        cmocka_unit_test(test_calls_that_make_threads),
        cmocka_unit_test(test_the_end_of_a_thread),
        cmocka_unit_test(test_the_end_of_a_context),
    };
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif
