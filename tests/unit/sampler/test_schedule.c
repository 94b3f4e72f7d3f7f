/* When threads are looked at again. */
#include "unit.h"
#include "sampler/schedule.h"

#define PERIOD_NS 10000000u

static struct thread_schedule asleep(uint64_t since_tick, uint64_t looked_tick)
{
    return (struct thread_schedule){.asleep_since_tick = since_tick, .looked_tick = looked_tick};
}

static uint64_t wait_after(uint64_t slept_ticks, pid_t tid, size_t threads)
{
    struct thread_schedule schedule = asleep(1000, 1000 + slept_ticks);
    const struct reading proven = {.at_ns = 7};
    schedule_unmoved(&schedule, &proven, tid, PERIOD_NS, threads);
    assert_true(schedule.is_asleep && schedule.proven.at_ns == 7);
    return schedule.next_look_tick - schedule.looked_tick;
}

static void test_the_longer_it_sleeps_the_seldomer(void **state)
{
    (void)state;
    for (uint64_t slept = 0; slept < 64; slept++)
        assert_true(wait_after(slept, 0, 1) <= 1); /* at each tick */
    /* Never more than 1/32 of its sleep, nor than 100 ms. */
    for (uint64_t slept = 64; slept < 2000; slept++)
        assert_true(wait_after(slept, 0, 1) <= slept / 32 && wait_after(slept, 0, 1) <= 10);
    assert_int_equal(wait_after(320000, 0, 1), 10 - (321000 % 10));
}

static void test_many_threads_take_turns(void **state)
{
    (void)state;
    unsigned looks[11] = {0};
    for (pid_t tid = 0; tid < 1000; tid++)
        looks[wait_after(320000, tid, 10000)]++;
    assert_int_equal(looks[0], 0);
    for (unsigned wait = 1; wait <= 10; wait++)
        assert_int_equal(looks[wait], 100);
}

static void test_very_many_are_looked_at_seldom_from_the_first(void **state)
{
    (void)state;
    unsigned looks[6] = {0};
    for (pid_t tid = 0; tid < 500; tid++)
        looks[wait_after(0, tid, 5000)]++;
    for (unsigned wait = 1; wait <= 5; wait++)
        assert_int_equal(looks[wait], 100);
}

static void test_a_move_after_ticks_that_were_not_looked_at(void **state)
{
    (void)state;
    struct thread_schedule schedule = asleep(10, 100);
    schedule.next_look_tick = 200;
    /* It was not known to sleep: nothing was assumed. */
    assert_int_equal(schedule_moved(&schedule, 90), 0);
    assert_int_equal(schedule.asleep_since_tick, 100);
    assert_int_equal(schedule.next_look_tick, 0);
    schedule.is_asleep = true;
    schedule.looked_tick = 108;
    assert_int_equal(schedule_moved(&schedule, 100), 7);
    assert_false(schedule.is_asleep);
    schedule.is_asleep = true;
    schedule.looked_tick = 109;
    assert_int_equal(schedule_moved(&schedule, 108), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longer_it_sleeps_the_seldomer),
        cmocka_unit_test(test_many_threads_take_turns),
        cmocka_unit_test(test_very_many_are_looked_at_seldom_from_the_first),
        cmocka_unit_test(test_a_move_after_ticks_that_were_not_looked_at),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
