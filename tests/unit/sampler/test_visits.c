/* Visits to the CPUs on which threads run. */
#include "fake/fake.h"

#include <limits.h>
#include <sched.h>

#define PID 100
#define TID 101
#define MS 1000000u

static struct fake_thread *begin_on(int cpu)
{
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    struct fake_thread *thread = fake_thread(process, TID, FAKE_RUNS);
    fake->options.max_pause_percent = 100;
    fake->cpus = 2;
    fake->came_ns = 5 * MS; /* nothing has happened on a CPU since the sampler came there */
    thread->cpu = cpu;
    thread->left_ns = 5 * MS;
    fake_begin();
    return thread;
}

static unsigned visits_told(pid_t tid)
{
    const struct observation *told;
    unsigned visits = 0;
    fake->told_next = 0;
    while ((told = fake_next_of(tid)))
        visits += told->evidence == EVIDENCE_STOPPED && told->stop.visit_ns;
    return visits;
}

static void test_a_runner_is_stopped_on_its_own_cpu(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_on(1);
    fake_run(thread, 11);
    /* One visit in each period; those of the last are still to come, or it has ended. */
    assert_in_range(thread->stops, 9, 11);
    assert_true(thread->stop.visit_ns > 0 && thread->stop.came_ns == 5 * MS);
    assert_int_equal(fake->cpu, 1);
    const struct observation *told;
    uint64_t ticks = 0, last_ns = 0;
    while ((told = fake_next_of(TID))) {
        assert_int_equal(told->evidence, EVIDENCE_STOPPED);
        assert_true(told->stop.visit_ns > last_ns);
        last_ns = told->stop.visit_ns;
        ticks += told->ticks;
    }
    assert_in_range(ticks, 9, 11); /* they include the looks that did not stop it */
}

/* Visits come at random times, which do not stay in step with the ticks. */
static void test_visits_are_at_random_moments(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_on(1);
    unsigned halves[2] = {0};
    fake_run(thread, 60);
    const struct observation *told;
    while ((told = fake_next_of(TID))) {
        uint64_t in_period_ns = (told->stop.visit_ns - FAKE_START_NS) % FAKE_PERIOD_NS;
        halves[in_period_ns > FAKE_PERIOD_NS / 2]++;
    }
    assert_in_range(halves[0], 15, 45);
    assert_in_range(halves[1], 15, 45);
}

/* A visit to a thread that is asleep then is not reported, and nothing is stopped. */
static void test_one_that_sleeps_at_the_visit(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_on(1);
    fake_run(thread, 1);
    unsigned stops = thread->stops;
    thread->doing = FAKE_SLEEPS;
    fake_ticks(3);
    assert_int_equal(thread->stops, stops);
    assert_int_equal(fake_count(TID, EVIDENCE_ASLEEP), 1);
    assert_false(fake->is_pinned); /* and there is no reason to stay there */
}

/* It no longer runs there, or did not when the sampler came. */
static void test_one_that_is_elsewhere_is_not_stopped(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_on(1);
    thread->left_ns = 4 * MS;
    fake_run(thread, 5);
    assert_true(fake->moves > 0);
    assert_int_equal(visits_told(TID), 0);
}

static void test_one_that_had_left_is_stopped_for_its_tick(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_on(0);
    fake->cpu = 0;
    thread->left_ns = 4 * MS;
    fake_run(thread, 5);
    assert_int_equal(thread->stops, 5);
    assert_int_equal(thread->stop.visit_ns, 0);
    assert_int_equal(thread->stop.came_ns, 5 * MS);
    assert_true(thread->stop.tick_ns > 0);
}

/* Another thread had that CPU, and is stopped instead. */
static void test_who_had_the_cpu_is_stopped(void **state)
{
    (void)state;
    struct fake_thread *waits = begin_on(1);
    struct fake_thread *runs = fake_thread(fake_find_process(PID), TID + 1, FAKE_RUNS);
    waits->doing = FAKE_RUNS;
    waits->left_ns = 4 * MS;
    runs->cpu = 1;
    runs->left_ns = 5 * MS;
    for (unsigned i = 0; i < 20; i++) {
        runs->activity.running_ns += FAKE_PERIOD_NS / 2;
        fake_run(waits, 1);
    }
    assert_in_range(visits_told(TID + 1), 15, 40);
    assert_int_equal(visits_told(TID), 0);
}

static void expect_stops_from_elsewhere(struct fake_thread *thread)
{
    fake_run(thread, 5);
    assert_int_equal(thread->stops, 5);
    assert_int_equal(fake->moves, 0);
    assert_int_equal(thread->stop.visit_ns, 0);
    assert_int_equal(thread->stop.came_ns, 0);
}

/* Threads on a CPU to which the sampler may not go are stopped from elsewhere. */
static void test_one_out_of_reach(void **state)
{
    (void)state;
    expect_stops_from_elsewhere(begin_on(2));
}

/* The sampler would not get its CPU. */
static void test_one_of_real_time_priority(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_on(1);
    thread->policy = SCHED_FIFO;
    expect_stops_from_elsewhere(thread);
}

/* Setting a slice keeps the flag: without the capability to clear it, the call would fail. */
static void test_a_slice_leaves_the_reset_on_fork(void **state)
{
    (void)state;
    fake->resets_on_fork = true;
    fake_run(begin_on(1), 5);
    assert_true(fake->moves > 1);
    assert_false(fake->lost_reset_on_fork);
}

/* At the end each thread has a stack, and the sampler may use all its CPUs again. */
static void test_the_end(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_on(1);
    fake_ticks(1);
    thread->activity.running_ns += MS;
    fake_end();
    assert_true(thread->stops > 0);
    assert_false(fake->is_pinned);
}

static void test_with_the_kernel_s_samples_there_are_none(void **state)
{
    (void)state;
    fake->options.capture = CAPTURE_AUTO;
    struct fake_thread *thread = begin_on(1);
    fake_run(thread, 5);
    assert_int_equal(fake->moves, 0);
    assert_int_equal(fake->came_asked, 0);
}

/* If there are many threads, some are visited in each period, each with the same chance. */
static void test_some_of_many(void **state)
{
    (void)state;
    struct fake_thread *threads[30] = {begin_on(1)};
    for (int i = 1; i < 30; i++) {
        threads[i] = fake_thread(fake_find_process(PID), TID + i, FAKE_RUNS);
        threads[i]->cpu = 1;
        threads[i]->left_ns = 5 * MS;
    }
    for (unsigned i = 0; i < 60; i++) {
        for (int j = 1; j < 30; j++)
            threads[j]->activity.running_ns += FAKE_PERIOD_NS / 30;
        fake_run(threads[0], 1);
    }
    unsigned least = UINT_MAX, most = 0;
    for (int i = 0; i < 30; i++) {
        least = threads[i]->stops < least ? threads[i]->stops : least;
        most = threads[i]->stops > most ? threads[i]->stops : most;
    }
    assert_true(least >= 5 && most <= 35); /* 16 of 60 ticks */
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_a_runner_is_stopped_on_its_own_cpu),
        IN_WORLD(test_visits_are_at_random_moments),
        IN_WORLD(test_one_that_sleeps_at_the_visit),
        IN_WORLD(test_one_that_is_elsewhere_is_not_stopped),
        IN_WORLD(test_one_that_had_left_is_stopped_for_its_tick),
        IN_WORLD(test_who_had_the_cpu_is_stopped),
        IN_WORLD(test_one_out_of_reach),
        IN_WORLD(test_one_of_real_time_priority),
        IN_WORLD(test_a_slice_leaves_the_reset_on_fork),
        IN_WORLD(test_the_end),
        IN_WORLD(test_with_the_kernel_s_samples_there_are_none),
        IN_WORLD(test_some_of_many),
    };
    return cmocka_run_group_tests_name("visits", tests, NULL, NULL);
}
