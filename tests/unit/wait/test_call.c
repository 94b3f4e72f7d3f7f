#include "unit.h"
#include "wait/call.h"

#include <linux/futex.h>

static struct call_target target_of(const char *name, uint64_t a, uint64_t b, uint64_t c,
                                    uint64_t d)
{
    const uint64_t arguments[6] = {a, b, c, d};
    return call_target_of(name, arguments);
}

static void test_futex(void **state)
{
    (void)state;
    struct call_target wait =
        target_of("futex", 0x7f00, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 2, 0);
    assert_int_equal(wait.kind, CALL_FUTEX);
    assert_int_equal(wait.address, 0x7f00);
    assert_false(wait.has_timeout);
    assert_false(wait.is_pi);
    assert_true(target_of("futex", 0x7f00, FUTEX_WAIT, 2, 0x1000).has_timeout);
    assert_true(target_of("futex", 0x7f00, FUTEX_LOCK_PI_PRIVATE, 0, 0).is_pi);
    assert_int_equal(target_of("futex", 0x7f00, FUTEX_WAKE, 1, 0).kind, CALL_OTHER);
}

static void test_files(void **state)
{
    (void)state;
    struct call_target read = target_of("read", 5, 0x1000, 1, 0);
    assert_int_equal(read.kind, CALL_FILE);
    assert_int_equal(read.fd, 5);
    /* Only the low half of the register counts. */
    assert_int_equal(target_of("flock", 0xffffffff00000007, 2, 0, 0).fd, 7);
    struct call_target polled = target_of("poll", 0x1000, 3, 0, 0);
    assert_int_equal(polled.kind, CALL_POLL);
    assert_int_equal(polled.count, 3);
}

static void test_others(void **state)
{
    (void)state;
    assert_int_equal(target_of("nanosleep", 0x1000, 0, 0, 0).address, 0x1000);
    assert_int_equal(target_of("clock_nanosleep", 0, 0, 0x2000, 0).address, 0x2000);
    /* Until a time, TIMER_ABSTIME: no length is known. */
    assert_int_equal(target_of("clock_nanosleep", 0, 1, 0x2000, 0).kind, CALL_OTHER);
    assert_int_equal(target_of("wait4", 1234, 0, 0, 0).process, 1234);
    assert_int_equal(target_of("wait4", 0xffffffff, 0, 0, 0).process, -1);
    assert_int_equal(target_of("waitid", 1, 1234, 0, 0).process, 1234);
    assert_int_equal(target_of("waitid", 0, 1234, 0, 0).process, -1);
    assert_int_equal(target_of("pause", 1, 2, 3, 4).kind, CALL_OTHER);
    assert_int_equal(target_of("", 1, 2, 3, 4).kind, CALL_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_futex),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
