#include "unit.h"
#include "observe/watch.h"

static const char blocked[] =
    "232 0x5 0x7ffd8c4c2d60 0x80 0xffffffff 0x0 0x8 0x7ffd8c4c2d30 0x7f6c0e5a1dd6\n";

static void test_blocked_in_a_call(void **state)
{
    (void)state;
    struct registers registers;
    long number = -7;
    assert_true(watch_parse_syscall(blocked, &registers, &number));
    assert_int_equal(number, 232);
    assert_int_equal(registers_sp(&registers), 0x7ffd8c4c2d30);
    assert_int_equal(registers_pc(&registers), 0x7f6c0e5a1dd6);
    assert_true(registers_has(&registers, architecture.sp));
    assert_true(registers_has(&registers, architecture.pc));
    /* The line does not show the frame pointer. */
    assert_false(registers_has(&registers, architecture.frame_pointer));
}

static void test_arguments_are_in_the_registers_of_the_call(void **state)
{
    (void)state;
#ifdef __x86_64__
    static const unsigned numbers[6] = {5, 4, 1, 10, 8, 9}; /* rdi rsi rdx r10 r8 r9 */
#else
    static const unsigned numbers[6] = {0, 1, 2, 3, 4, 5};
#endif
    struct registers registers;
    long number;
    assert_true(watch_parse_syscall("17 0x11 0x12 0x13 0x14 0x15 0x16 0x7000 0x4000\n", &registers,
                                    &number));
    uint64_t known = 1ull << architecture.sp | 1ull << architecture.pc;
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(registers.values[numbers[i]], 0x11 + i);
        known |= 1ull << numbers[i];
    }
    assert_true(registers.known == known);
}

static void test_call_number_0(void **state)
{
    (void)state;
    struct registers registers;
    long number = -7;
    assert_true(watch_parse_syscall("0 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffc00000000 0x7f0000000001",
                                    &registers, &number));
    assert_int_equal(number, 0);
    assert_int_equal(registers_pc(&registers), 0x7f0000000001);
}

static void test_addresses_are_64_bits_wide(void **state)
{
    (void)state;
    struct registers registers;
    long number;
    assert_true(watch_parse_syscall("1 0xffffffffffffffff 0x0 0x0 0x0 0x0 0x0 "
                                    "0xfffffffffffffff0 0xffffffffff600000\n",
                                    &registers, &number));
    assert_true(registers_sp(&registers) == 0xfffffffffffffff0ull);
    assert_true(registers_pc(&registers) == 0xffffffffff600000ull);
}

static void test_blocked_outside_a_call(void **state)
{
    (void)state;
    struct registers registers;
    long number = -7;
    assert_true(watch_parse_syscall("-1 0x7ffd8c4c2d30 0x55d0c0de0042\n", &registers, &number));
    assert_int_equal(number, -1);
    assert_int_equal(registers_sp(&registers), 0x7ffd8c4c2d30);
    assert_int_equal(registers_pc(&registers), 0x55d0c0de0042);
    assert_true(registers.known == (1ull << architecture.sp | 1ull << architecture.pc));
}

static void test_running_and_broken_lines(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "running\n",
        "running",
        "",
        "\n",
        "-1\n",
        "-1 0x7ffd8c4c2d30\n",
        "-2 0x7ffd8c4c2d30 0x1\n",
        "-2 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n",
        "232\n",
        "232 0x7ffd8c4c2d30 0x7f6c0e5a1dd6\n",
        "232 0x5 0x7ffd8c4c2d60 0x80 0xffffffff 0x0 0x8 0x7ffd8c4c2d30\n",
        "x 0x5 0x7ffd8c4c2d60 0x80 0xffffffff 0x0 0x8 0x7ffd8c4c2d30 0x7f6c0e5a1dd6\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct registers registers = {.known = 5};
        long number = 77;
        if (watch_parse_syscall(lines[i], &registers, &number))
            fail_msg("\"%s\" was taken for a blocked thread's", lines[i]);
        assert_int_equal(registers.known, 5);
        assert_int_equal(number, 77);
    }
}

static void test_registers_has(void **state)
{
    (void)state;
    struct registers registers = {.known = 1ull << 32 | 1};
    assert_true(registers_has(&registers, 0));
    assert_false(registers_has(&registers, 1));
    assert_true(registers_has(&registers, 32));
    assert_false(registers_has(&registers, 33));
    assert_false(registers_has(&registers, 64)); /* a shift by it would be undefined */
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* Files are kept open for each thread: a session of days with many short threads must not run out
 * of descriptors. */
static void test_files_are_closed_with_their_thread(void **state)
{
    (void)state;
    struct watches watches = {0};
    int fds[4];
    for (size_t i = 0; i < 4; i++)
        fds[i] = file_of_text("");
    watches_get(&watches, 0)->schedstat.fd_plus_1 = fds[0] + 1;
    watches_get(&watches, 0)->syscall.fd_plus_1 = fds[1] + 1;
    watches_get(&watches, 70)->schedstat.fd_plus_1 = fds[2] + 1;
    watches_get(&watches, 70)->syscall.fd_plus_1 = fds[3] + 1;
    watches_forget(&watches, 0);
    watches_forget(&watches, 1000); /* never used */
    assert_false(is_open(fds[0]) || is_open(fds[1]));
    assert_true(is_open(fds[2]) && is_open(fds[3]));
    assert_int_equal(watches_get(&watches, 0)->schedstat.fd_plus_1, 0);
    watches_free(&watches);
    assert_false(is_open(fds[2]) || is_open(fds[3]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocked_in_a_call),
        cmocka_unit_test(test_arguments_are_in_the_registers_of_the_call),
        cmocka_unit_test(test_call_number_0),
        cmocka_unit_test(test_addresses_are_64_bits_wide),
        cmocka_unit_test(test_blocked_outside_a_call),
        cmocka_unit_test(test_running_and_broken_lines),
        cmocka_unit_test(test_registers_has),
        cmocka_unit_test(test_files_are_closed_with_their_thread),
    };
    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
