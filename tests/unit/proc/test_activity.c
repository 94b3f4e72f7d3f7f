#include "unit.h"
#include "proc/activity.h"

static void test_line(void **state)
{
    (void)state;
    struct activity activity;
    assert_true(activity_parse("1187426 53201 37\n", &activity));
    assert_int_equal(activity.running_ns, 1187426);
    assert_int_equal(activity.waiting_ns, 53201);
    assert_int_equal(activity.switches, 37);
    assert_false(activity.counts_ends);
}

static void test_large_numbers_and_zero_times(void **state)
{
    (void)state;
    struct activity activity;
    assert_true(activity_parse("18446744073709551615 18446744073709551614 4294967297", &activity));
    assert_true(activity.running_ns == UINT64_MAX);
    assert_true(activity.waiting_ns == UINT64_MAX - 1);
    assert_true(activity.switches == 4294967297ull);
    assert_true(activity_parse("0 0 1\n", &activity));
    assert_int_equal(activity.switches, 1);
}

static void test_refuses_what_says_nothing(void **state)
{
    (void)state;
    struct activity activity = {1, 2, 3, true};
    /* What kernels without CONFIG_SCHED_INFO show: equal for ever, which is no proof of sleep. */
    assert_false(activity_parse("0 0 0\n", &activity));
    assert_false(activity_parse("", &activity));
    assert_false(activity_parse("\n", &activity));
    assert_false(activity_parse("12 13\n", &activity));
    assert_false(activity_parse("running\n", &activity));
    assert_false(activity_parse("12 13 x\n", &activity));
    assert_int_equal(activity.running_ns, 1);
    assert_int_equal(activity.waiting_ns, 2);
    assert_int_equal(activity.switches, 3);
}

static const char status_text[] = "Name:\tapp\n"
                                  "State:\tS (sleeping)\n"
                                  "Mems_allowed_list:\t0\n"
                                  "voluntary_ctxt_switches:\t36\n"
                                  "nonvoluntary_ctxt_switches:\t5\n";

static void test_preemptions(void **state)
{
    (void)state;
    uint64_t preemptions = 7;
    assert_true(activity_parse_preemptions(status_text, &preemptions));
    assert_int_equal(preemptions, 5);
    assert_false(activity_parse_preemptions("voluntary_ctxt_switches:\t36\n", &preemptions));
    assert_int_equal(preemptions, 5);
}

static void test_status(void **state)
{
    (void)state;
    struct activity activity = {1, 2, 3, false};
    assert_true(activity_parse_status(status_text, &activity));
    assert_int_equal(activity.switches, 41);
    assert_true(activity.counts_ends);
    assert_int_equal(activity.running_ns, 0);
    assert_int_equal(activity.waiting_ns, 0);
    assert_true(activity_parse_status("voluntary_ctxt_switches:\t0\n"
                                      "nonvoluntary_ctxt_switches:\t0\n",
                                      &activity));
    assert_int_equal(activity.switches, 0);
}

static void test_status_without_both_counts(void **state)
{
    (void)state;
    struct activity activity = {1, 2, 3, false};
    assert_false(activity_parse_status("", &activity));
    assert_false(activity_parse_status("Name:\tapp\n", &activity));
    assert_false(activity_parse_status("voluntary_ctxt_switches:\t36\n", &activity));
    assert_false(activity_parse_status("nonvoluntary_ctxt_switches:\t36\n", &activity));
    assert_int_equal(activity.switches, 3);
    assert_false(activity.counts_ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_large_numbers_and_zero_times),
        cmocka_unit_test(test_refuses_what_says_nothing),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_preemptions),
        cmocka_unit_test(test_status_without_both_counts),
    };
    return cmocka_run_group_tests_name("activity", tests, NULL, NULL);
}
