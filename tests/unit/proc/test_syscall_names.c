#include "unit.h"
#include "proc/syscall_names.h"

#include <sys/syscall.h>

static void test_calls(void **state)
{
    (void)state;
    assert_string_equal(syscall_name(SYS_read), "read");
    assert_string_equal(syscall_name(SYS_futex), "futex");
    assert_string_equal(syscall_name(SYS_epoll_pwait), "epoll_pwait");
    assert_string_equal(syscall_name(SYS_clock_nanosleep), "clock_nanosleep");
    assert_string_equal(syscall_name(SYS_restart_syscall), "restart_syscall");
}

static void test_numbers_without_a_name(void **state)
{
    (void)state;
    assert_null(syscall_name(-1));
    assert_null(syscall_name(100000));
}

static void test_each_name_is_a_name(void **state)
{
    (void)state;
    size_t count = 0;
    for (long number = 0; number < 1000; number++) {
        const char *name = syscall_name(number);
        if (!name)
            continue;
        count++;
        assert_true(strlen(name) > 1);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(name));
        assert_string_not_equal(name, "syscalls");
    }
    assert_true(count > 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_numbers_without_a_name),
        cmocka_unit_test(test_each_name_is_a_name),
    };
    return cmocka_run_group_tests_name("syscall_names", tests, NULL, NULL);
}
