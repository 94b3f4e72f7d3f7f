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
    /* What kernels without CONFIG_SCHED_INFO show: it never changes, which is no proof of sleep. */
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

static const char sched_text[] =
    "se.exec_start : 1.000000 (4852, #threads: 1)\n" /* part of a thread's name */
    "-------------------------------------------------------------------\n"
    "se.exec_start                                :      28598546.724947\n"
    "se.vruntime                                  :        664975.524365\n"
    "se.sum_exec_runtime                          :             1.474126\n"
    "se.nr_migrations                             :                    2\n";

static void test_last_run(void **state)
{
    (void)state;
    struct last_run last_run;
    assert_true(activity_parse_last_run(sched_text, &last_run));
    assert_true(last_run.at_ns == 28598546724947u);
    assert_int_equal(last_run.running_ns, 1474126);
    assert_int_equal(last_run.migrations, 2);
}

/* Cut off anywhere, as from a kernel that lacks one of the lines. */
static void test_last_run_needs_all_lines(void **state)
{
    (void)state;
    char text[sizeof sched_text];
    struct last_run last_run = {1, 2, 3};
    size_t bytes = (size_t)(strstr(sched_text, "se.nr_mig") - sched_text);
    for (size_t i = 0; i < bytes; i++) {
        memcpy(text, sched_text, i);
        text[i] = '\0';
        assert_false(activity_parse_last_run(text, &last_run));
    }
    assert_true(last_run.at_ns == 1 && last_run.running_ns == 2 && last_run.migrations == 3);
}

static void test_what_was_slept(void **state)
{
    (void)state;
    const struct last_run before = {1000, 500, 3};
    struct last_run after = {9000, 1500, 3};
    assert_int_equal(last_run_slept_ns(&before, &after, 2000), 5000);
    assert_int_equal(last_run_slept_ns(&before, &after, 7000), 0);
    assert_int_equal(last_run_slept_ns(&before, &after, 7001), 0); /* an interrupt ran in between */
    after.migrations = 4; /* the clocks of two CPUs can't be compared */
    assert_int_equal(last_run_slept_ns(&before, &after, 2000), 0);
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
        cmocka_unit_test(test_last_run),
        cmocka_unit_test(test_last_run_needs_all_lines),
        cmocka_unit_test(test_what_was_slept),
    };
    return cmocka_run_group_tests_name("activity", tests, NULL, NULL);
}
