/* How many sleeps one observation represents. */
#include "unit.h"
#include "worker/account.h"

static struct thread_sleeps sleeps;

static int set_up(void **state)
{
    (void)state;
    sleeps = (struct thread_sleeps){0};
    return 0;
}

static struct observation found(uint64_t switches)
{
    return (struct observation){
        .evidence = EVIDENCE_ASLEEP,
        .state = THREAD_SLEEPING,
        .now = {.at_ns = 1, .has_activity = true, .activity = {.switches = switches}},
    };
}

static uint64_t take(uint64_t switches)
{
    const struct observation observation = found(switches);
    return sleeps_take(&sleeps, &observation);
}

static uint64_t take_read(uint64_t switches, uint64_t preemptions)
{
    struct observation observation = found(switches);
    observation.wait.has_preemptions = true;
    observation.wait.preemptions = preemptions;
    return sleeps_take(&sleeps, &observation);
}

static void stop(enum thread_state state)
{
    const struct observation observation = {.evidence = EVIDENCE_STOPPED, .state = state};
    sleeps_note_stop(&sleeps, &observation);
}

static void test_each_switch_is_a_sleep(void **state)
{
    (void)state;
    assert_int_equal(take(1000), 1);
    assert_int_equal(take(1001), 1);
    assert_int_equal(take(1041), 40);
    /* The same sleep, copied again. */
    assert_int_equal(take(1041), 0);
    assert_int_equal(take(1042), 1);
}

static void test_counts_that_do_not_follow(void **state)
{
    (void)state;
    struct observation other = found(2000);
    assert_int_equal(take(1000), 1);
    /* Fewer than before: another thread's counts. */
    assert_int_equal(take(10), 1);
    /* Counted differently, */
    other.now.activity.counts_ends = true;
    assert_int_equal(sleeps_take(&sleeps, &other), 1);
    other.now.activity.switches += 5;
    assert_int_equal(sleeps_take(&sleeps, &other), 5);
    /* and not counted at all. */
    other.now = (struct reading){.at_ns = 1};
    assert_int_equal(sleeps_take(&sleeps, &other), 1);
    assert_int_equal(take(3000), 1);
    assert_int_equal(take(3003), 3);
}

static void test_our_stops_are_no_sleeps(void **state)
{
    (void)state;
    const struct observation asleep = found(1);
    assert_int_equal(take(1000), 1);
    for (int i = 0; i < 50; i++)
        stop(THREAD_RUNNING);
    stop(THREAD_SLEEPING); /* woken, then stopped */
    sleeps_note_stop(&sleeps, &asleep);
    assert_int_equal(take(1059), 7);
    /* More stops than switches: it was observed asleep nevertheless. */
    for (int i = 0; i < 10; i++)
        stop(THREAD_RUNNING);
    assert_int_equal(take(1061), 1);
    /* Less the nine that have been counted too many. */
    assert_int_equal(take(1080), 10);
}

/* It computes for long, and is preempted 6,000 times, before it waits once. */
static void test_preemptions_are_no_sleeps(void **state)
{
    (void)state;
    assert_int_equal(take_read(1000, 100), 1);
    assert_int_equal(take_read(7001, 6100), 1);
}

/* Half of the switches are preemptions: at first since the thread's start, then since the last
 * reading. */
static void test_the_part_of_preemptions_is_kept(void **state)
{
    (void)state;
    assert_int_equal(take_read(1000, 500), 1);
    assert_int_equal(take(1040), 20);
    assert_int_equal(take_read(1100, 510), 70); /* of 100, ten were preemptions */
    assert_int_equal(take(1110), 9);
}

/* An excess before a reading is subtracted later, but each observed sleep counts. */
static void test_the_sum_is_right(void **state)
{
    (void)state;
    uint64_t sum = 0;
    assert_int_equal(take_read(0, 0), 1);
    for (uint64_t i = 1; i <= 1000; i++)
        sum += i % 10 ? take(100 * i) : take_read(100 * i, 90 * i);
    assert_in_range(sum, 9900, 10200);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_switch_is_a_sleep),          TEST(test_counts_that_do_not_follow),
        TEST(test_our_stops_are_no_sleeps),         TEST(test_preemptions_are_no_sleeps),
        TEST(test_the_part_of_preemptions_is_kept), TEST(test_the_sum_is_right),
    };
    return cmocka_run_group_tests_name("sleeps", tests, NULL, NULL);
}
