/* When threads are looked at again. */
#include "unit.h"
#include "sampler/schedule.h"

static struct thread asleep(pid_t tid, uint64_t since_tick, uint64_t looked_tick)
{
    return (struct thread){
        .tid = tid,
        .phase = PHASE_AWAKE,
        .schedule = {.asleep_since_tick = since_tick, .looked_tick = looked_tick},
    };
}

static uint64_t wait_after(uint64_t slept_ticks, pid_t tid, size_t threads)
{
    struct thread thread = asleep(tid, 1000, 1000 + slept_ticks);
    const struct reading proven = {.at_ns = 7};
    schedule_unmoved(&thread, &proven, threads);
    assert_int_equal(thread.phase, PHASE_ASLEEP);
    assert_int_equal(thread.schedule.proven.at_ns, 7);
    return thread.schedule.next_look_tick - thread.schedule.looked_tick;
}

static void test_the_longer_it_sleeps_the_seldomer(void **state)
{
    (void)state;
    for (uint64_t slept = 0; slept < 64; slept++)
        assert_true(wait_after(slept, 0, 1) <= 1); /* at each tick */
    for (uint64_t slept = 64; slept < 1000000; slept = slept * 9 / 8)
        assert_in_range(wait_after(slept, 0, 1), slept / 32 - slept / 32 / 4, slept / 32);
}

/* However long a thread slept before it moves, its last look was within 1/32 of that time. */
static void test_a_move_is_seen_within_a_part_of_the_sleep(void **state)
{
    (void)state;
    const struct reading proven = {.at_ns = 7};
    for (uint64_t moves_tick = 1; moves_tick < 1000000; moves_tick = moves_tick * 5 / 4 + 1) {
        struct thread thread = asleep(4321, 0, 0);
        struct thread_schedule *schedule = &thread.schedule;
        while (schedule->looked_tick <= moves_tick) {
            schedule_unmoved(&thread, &proven, 1);
            uint64_t next_tick = schedule->next_look_tick;
            schedule->looked_tick +=
                next_tick > schedule->looked_tick ? next_tick - schedule->looked_tick : 1;
        }
        assert_true(schedule->looked_tick - moves_tick <= moves_tick / 32 + 1);
    }
}

static void test_threads_that_fell_asleep_together_drift_apart(void **state)
{
    (void)state;
    unsigned looks[101] = {0};
    for (pid_t tid = 0; tid < 2600; tid++)
        looks[wait_after(3200, tid, 1)]++;
    for (unsigned wait = 75; wait <= 100; wait++)
        assert_int_equal(looks[wait], 100);
}

static void test_very_many_are_looked_at_in_turn(void **state)
{
    (void)state;
    assert_int_equal(wait_after(31, 0, 250), 0);
    /* At each tick, 32 of the threads beyond 250 are looked at. */
    assert_in_range(wait_after(500, 0, 250 + 32 * 200), 150, 200);
    assert_in_range(wait_after(1000, 0, 1000), 24, 31); /* 1/32 of the sleep is more */
    /* A thread that has not slept for long is looked at before it has slept twice as long. */
    for (uint64_t slept = 0; slept < 4; slept++)
        assert_true(wait_after(slept, 0, 10000) <= 1);
    for (uint64_t slept = 4; slept < 400; slept++)
        assert_in_range(wait_after(slept, 0, 10000), slept / 2 - slept / 8, slept / 2);
}

static const struct moment never = {0};

static void test_a_move_after_ticks_that_were_not_looked_at(void **state)
{
    (void)state;
    struct thread thread = asleep(1, 10, 100);
    thread.schedule.next_look_tick = 200;
    /* It was not known to sleep, so nothing is assumed. */
    assert_int_equal(schedule_moved(&thread, 90, &never), 0);
    assert_int_equal(thread.schedule.asleep_since_tick, 100);
    assert_int_equal(thread.schedule.next_look_tick, 0);
    thread.phase = PHASE_ASLEEP;
    thread.schedule.looked_tick = 108;
    assert_int_equal(schedule_moved(&thread, 100, &never), 7);
    assert_int_equal(thread.phase, PHASE_AWAKE);
    thread.phase = PHASE_ASLEEP;
    thread.schedule.looked_tick = 109;
    assert_int_equal(schedule_moved(&thread, 108, &never), 0);
}

/* A thread that sleeps at tick 100 is found elsewhere at tick 120. */
static struct thread_schedule moved(uint64_t rest_tick, uint64_t *ret_assumed)
{
    struct thread thread = {.phase = PHASE_AWAKE};
    struct thread_schedule *schedule = &thread.schedule;
    const struct reading proven = {.at_ns = 1000, .has_activity = true};
    const struct moment rest = {rest_tick, 1000 + rest_tick};
    schedule_look(schedule, 99);
    schedule_look(schedule, 100);
    schedule_unmoved(&thread, &proven, 1);
    *ret_assumed = schedule_moved(&thread, schedule_look(schedule, 120), &rest);
    assert_int_equal(schedule->look_ticks + schedule->proven_ticks, 21);
    return *schedule;
}

static void test_it_slept_while_its_process_was_at_rest(void **state)
{
    (void)state;
    uint64_t assumed;
    struct thread_schedule schedule = moved(117, &assumed);
    assert_int_equal(schedule.look_ticks, 3);
    assert_int_equal(schedule.proven.at_ns, 1117);
    assert_int_equal(assumed, 2);
    /* The process has not rested since the look that proved the sleep. */
    schedule = moved(100, &assumed);
    assert_int_equal(schedule.look_ticks, 20);
    assert_int_equal(schedule.proven.at_ns, 1000);
    assert_int_equal(assumed, 19);
}

/* A look represents the ticks since the previous look; a look that proves sleep proves them. */
static void test_looks_stand_for_all_ticks(void **state)
{
    (void)state;
    struct thread thread = {.phase = PHASE_AWAKE};
    struct thread_schedule *schedule = &thread.schedule;
    const struct reading proven = {.at_ns = 7};
    /* The time before its first look is not known. */
    assert_int_equal(schedule_look(schedule, 500), 0);
    assert_int_equal(schedule->look_ticks, 1);
    assert_int_equal(schedule_look(schedule, 501), 500);
    schedule_unmoved(&thread, &proven, 1);
    assert_int_equal(schedule_look(schedule, 511), 501);
    assert_int_equal(schedule->look_ticks, 10);
    schedule_unmoved(&thread, &proven, 1);
    assert_int_equal(schedule->proven_ticks, 11);
    /* Another look at the same tick represents as many ticks. */
    assert_int_equal(schedule_look(schedule, 511), 511);
    assert_int_equal(schedule->look_ticks, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longer_it_sleeps_the_seldomer),
        cmocka_unit_test(test_a_move_is_seen_within_a_part_of_the_sleep),
        cmocka_unit_test(test_threads_that_fell_asleep_together_drift_apart),
        cmocka_unit_test(test_very_many_are_looked_at_in_turn),
        cmocka_unit_test(test_a_move_after_ticks_that_were_not_looked_at),
        cmocka_unit_test(test_looks_stand_for_all_ticks),
        cmocka_unit_test(test_it_slept_while_its_process_was_at_rest),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
