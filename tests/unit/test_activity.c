#include "unit.h"
#include "target/activity.h"

static void test_line(void **state)
{
    (void)state;
    struct activity activity;
    assert_true(activity_parse("1187426 53201 37\n", &activity));
    assert_int_equal(activity.running_ns, 1187426);
    assert_int_equal(activity.waiting_ns, 53201);
    assert_int_equal(activity.switched_in, 37);
}

static void test_large_numbers_and_zero_times(void **state)
{
    (void)state;
    struct activity activity;
    assert_true(activity_parse("18446744073709551615 18446744073709551614 4294967297", &activity));
    assert_true(activity.running_ns == UINT64_MAX);
    assert_true(activity.waiting_ns == UINT64_MAX - 1);
    assert_true(activity.switched_in == 4294967297ull);
    assert_true(activity_parse("0 0 1\n", &activity));
    assert_int_equal(activity.switched_in, 1);
}

static void test_refuses_what_says_nothing(void **state)
{
    (void)state;
    struct activity activity = {1, 2, 3};
    /* What kernels without CONFIG_SCHED_INFO show: equal for ever, which is no proof of sleep. */
    assert_false(activity_parse("0 0 0\n", &activity));
    assert_false(activity_parse("", &activity));
    assert_false(activity_parse("\n", &activity));
    assert_false(activity_parse("12 13\n", &activity));
    assert_false(activity_parse("running\n", &activity));
    assert_false(activity_parse("12 13 x\n", &activity));
    assert_int_equal(activity.running_ns, 1);
    assert_int_equal(activity.waiting_ns, 2);
    assert_int_equal(activity.switched_in, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_large_numbers_and_zero_times),
        cmocka_unit_test(test_refuses_what_says_nothing),
    };
    return cmocka_run_group_tests_name("activity", tests, NULL, NULL);
}
