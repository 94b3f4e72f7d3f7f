/* Stops of running threads: when they are requested, and what is reported about threads that stop
 * late, or not at all. */
#include "fake/fake.h"

#define PID 100
#define TID 101
#define MANY 150

static struct fake_thread *begin_with(enum fake_doing doing)
{
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    struct fake_thread *thread = fake_thread(process, TID, doing);
    fake->options.max_pause_percent = 100;
    fake_begin();
    return thread;
}

static uint64_t ticks_told(pid_t tid, enum evidence evidence)
{
    const struct observation *told;
    uint64_t ticks = 0;
    while ((told = fake_next_of(tid)))
        ticks += told->evidence == evidence ? told->ticks : 0;
    return ticks;
}

static void test_a_runner_is_stopped_at_each_tick(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    fake_run(thread, 10);
    assert_int_equal(thread->stops, 10);
    assert_int_equal(ticks_told(TID, EVIDENCE_STOPPED), 10);
    assert_int_equal(fake->sampler.counts.threads_stopped, 1);
    assert_int_equal(fake->sampler.counts.samples_thinned, 0);
}

static void test_one_that_stops_late_holds_up_no_other(void **state)
{
    (void)state;
    struct fake_thread *slow = begin_with(FAKE_RUNS);
    struct fake_thread *other = fake_thread(fake_find_process(PID), TID + 1, FAKE_RUNS);
    slow->is_slow = true;
    for (unsigned i = 0; i < 10; i++) {
        other->activity.running_ns += FAKE_PERIOD_NS;
        fake_run(slow, 1);
    }
    assert_int_equal(slow->stops, 1); /* and it is not asked again */
    assert_int_equal(fake_count(TID, EVIDENCE_STOPPED), 0);
    assert_int_equal(fake_count(TID + 1, EVIDENCE_STOPPED), 10);
    slow->is_slow = false;
    fake_run(slow, 2);
    const struct observation *first = fake_next_of(TID);
    assert_int_equal(first->evidence, EVIDENCE_STOPPED);
    assert_int_equal(first->ticks, 1);
    const struct observation *second = fake_next_of(TID);
    assert_int_equal(second->evidence, EVIDENCE_STOPPED);
    assert_int_equal(first->ticks + second->ticks,
                     11); /* the second one includes the missed ticks */
}

/* The thread gets a CPU on which to stop at the beginning of a round that takes a fifth of the
 * period. */
static void test_one_that_stops_late_is_not_held_for_a_round(void **state)
{
    (void)state;
    enum { LOOK_NS = 10000 };
    struct fake_thread *slow = begin_with(FAKE_RUNS);
    for (pid_t i = 1; i < MANY; i++)
        fake_thread(fake_find_process(PID), TID + i, FAKE_SLEEPS);
    fake->look_ns = LOOK_NS;
    slow->is_slow = true;
    fake_run(slow, 3);
    assert_int_equal(slow->stops, 1);
    slow->is_slow = false;
    slow->slow_until_ns = ticks_due_ns(&fake->sampler.clock.ticks, 3) + 3 * LOOK_NS;
    assert_true(slow->slow_until_ns > fake->now_ns);
    fake_run(slow, 1);
    assert_in_range(slow->let_go_ns, slow->slow_until_ns, slow->slow_until_ns + 50 * LOOK_NS);
    assert_int_equal(fake_count(TID, EVIDENCE_STOPPED), 1);
}

static void test_one_that_ends_instead(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    thread->is_slow = true;
    fake_run(thread, 1);
    fake_forget_told();
    thread->is_slow = false;
    thread->doing = FAKE_GONE;
    fake_ticks(1);
    assert_int_equal(fake_count(TID, EVIDENCE_GONE), 1);
    const struct observation *told = fake_next_of(TID);
    assert_true(told->end.is_certain); /* it was still there when it was looked at */
    assert_true(told->before.look.at_ns > 0 && told->now.at_ns >= told->before.look.at_ns);
    fake_ticks(3);
    assert_null(fake_next_of(TID));
}

static void test_one_that_may_not_be_stopped_is_assumed(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    thread->is_refused_stop = true;
    fake_run(thread, 10);
    assert_int_equal(fake_count(TID, EVIDENCE_STOPPED), 0);
    assert_int_equal(fake->sampler.counts.threads_stopped, 0);
    fake_end();
    const struct observation *told = fake_next_of(TID);
    assert_non_null(told);
    assert_true(told->before.look.at_ns > 0); /* its time is known nevertheless */
}

/* It falls asleep between the look that found it running and the stop; its next look finds it
 * asleep. */
static void test_one_that_fell_asleep_is_not_woken(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLIPS);
    thread->doing = FAKE_SLEEPS;
    fake_ticks(2);
    assert_int_equal(thread->stops, 0);
    assert_int_equal(fake_count(TID, EVIDENCE_ASLEEP), 1);
}

static void test_pauses_have_a_budget(void **state)
{
    (void)state;
    fake->options.max_pause_percent = 1;
    struct fake_process *process = fake_process(PID);
    struct fake_thread *thread = fake_thread(process, PID, FAKE_RUNS);
    thread->pause_ns = 1000000; /* a hundredth of ten periods */
    fake_begin();
    fake_run(thread, 100);
    assert_in_range(thread->stops, 8, 13);
    assert_int_equal(fake->sampler.counts.samples_thinned, 100 - thread->stops);
    /* A sample represents the looks before it that did not stop the thread. */
    assert_in_range(ticks_told(PID, EVIDENCE_STOPPED), 88, 100);
}

static void test_without_snapshots_stops_wait(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_ticks(1);
    fake_hoard(0);
    thread->doing = FAKE_RUNS;
    uint64_t deferred = fake->sampler.counts.observations_put_off;
    fake_run(thread, 3);
    assert_int_equal(thread->stops, 0);
    assert_int_equal(fake_count(TID, EVIDENCE_STOPPED), 0);
    assert_true(fake->sampler.counts.observations_put_off > deferred);
    fake_hoard_no_more();
    fake_run(thread, 1);
    assert_int_equal(fake_count(TID, EVIDENCE_STOPPED), 1);
}

/* Its pause does not count as ours, and it does not run. */
static void test_one_that_a_signal_has_stopped(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    thread->is_group_stopped = true;
    fake_ticks(1);
    const struct observation *told = fake_next_of(TID);
    assert_int_equal(told->evidence, EVIDENCE_STOPPED);
    assert_int_equal(told->state, THREAD_STOPPED);
    assert_int_equal(fake->sampler.counts.threads_stopped, 0);
    assert_int_equal(fake->sampler.counts.pauses.count, 0);
}

static void test_many_take_turns(void **state)
{
    unsigned least = UINT32_MAX, most = 0;
    (void)state;
    struct fake_process *process = fake_process(PID);
    for (pid_t i = 0; i < MANY; i++)
        fake_thread(process, PID + i, FAKE_RUNS)->is_slow = true;
    fake->options.max_pause_percent = 100;
    fake_begin();
    for (unsigned tick = 0; tick < 20; tick++) {
        fake_ticks(1);
        assert_int_equal(fake->stop_count, STOPS_MAX);
        for (pid_t i = 0; i < MANY; i++) {
            fake_find(PID + i)->is_slow = true;
            fake_find(PID + i)->activity.running_ns += FAKE_PERIOD_NS;
        }
        /* By the next tick, all threads that were asked to stop together have stopped. */
        for (size_t i = 0; i < fake->stop_count; i++)
            fake_find(fake->stops[i].subject.tid)->is_slow = false;
    }
    for (pid_t i = 0; i < MANY; i++) {
        unsigned stops = fake_find(PID + i)->stops;
        least = stops < least ? stops : least;
        most = stops > most ? stops : most;
    }
    assert_true(least > 0);
    assert_true(most - least <= 2);
    for (pid_t i = 0; i < MANY; i++)
        fake_find(PID + i)->is_slow = false;
}

/* Its number is not given to another thread, because a stop is still pending. */
static void test_one_that_leaves_the_list_keeps_its_number(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    thread->is_slow = true;
    fake_ticks(2);
    struct fake_thread *other = fake_thread(fake_find_process(PID), TID + 1, FAKE_SLEEPS);
    fake_thread_leaves(thread);
    fake_ticks(2);
    const struct observation *gone = fake_next_of(TID);
    while (gone->evidence != EVIDENCE_GONE)
        gone = fake_next_of(TID);
    fake->told_next = 0;
    const struct observation *told = fake_next_of(TID + 1);
    assert_non_null(told);
    assert_int_not_equal(told->thread, gone->thread);
    thread->is_slow = false;
    fake_ticks(1);
    fake_thread(fake_find_process(PID), TID + 2, FAKE_SLEEPS);
    fake_ticks(2);
    assert_int_equal(fake_next_of(TID + 2)->thread, gone->thread); /* now it is */
    assert_true(other->looks > 0);
}

static void test_a_copy_of_another_program_is_given_up(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    thread->is_slow = true;
    fake_run(thread, 1);
    fake_forget_told();
    thread->process->programs++;
    thread->is_slow = false;
    fake_step();
    assert_int_equal(fake_count(TID, EVIDENCE_STOPPED), 0);
    assert_int_equal(fake->stop_count, 0);
    fake_run(thread, 2);
    assert_true(fake_count(TID, EVIDENCE_STOPPED) >= 1);
    while (fake_next_of(TID))
        assert_int_equal(fake->told[fake->told_next - 1].program, 1);
}

/* Nothing else can wait for a child of ours whose end was seen while stopping it. */
static void test_the_command_s_status_is_kept(void **state)
{
    (void)state;
    fake->sampler.command.pid = 0;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake->sampler.command.pid = PID;
    fake_ticks(1);
    fake->exited = PID + 5; /* another one */
    fake->exit_status = 9;
    fake_ticks(1);
    assert_false(atomic_load(&fake->sampler.command.has_end));
    fake->exited = PID;
    fake->exit_status = 3 << 8;
    fake_ticks(1);
    assert_true(atomic_load(&fake->sampler.command.has_end));
    assert_int_equal(fake->sampler.command.status, 3 << 8);
    assert_int_equal(thread->stops, 0);
}

/* At the end it is awaited, but not forever. */
static void test_one_that_does_not_stop_at_the_end(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    thread->is_slow = true;
    fake_run(thread, 5);
    fake_end();
    assert_int_equal(fake_count(TID, EVIDENCE_STOPPED), 0);
    assert_int_equal(fake_count(TID, EVIDENCE_GONE), 1);
    assert_int_equal(fake->told[fake->told_count - 1].message.kind, MESSAGE_END);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_a_runner_is_stopped_at_each_tick),
        IN_WORLD(test_one_that_stops_late_holds_up_no_other),
        IN_WORLD(test_one_that_stops_late_is_not_held_for_a_round),
        IN_WORLD(test_one_that_ends_instead),
        IN_WORLD(test_one_that_may_not_be_stopped_is_assumed),
        IN_WORLD(test_one_that_fell_asleep_is_not_woken),
        IN_WORLD(test_pauses_have_a_budget),
        IN_WORLD(test_without_snapshots_stops_wait),
        IN_WORLD(test_one_that_a_signal_has_stopped),
        IN_WORLD(test_many_take_turns),
        IN_WORLD(test_one_that_leaves_the_list_keeps_its_number),
        IN_WORLD(test_a_copy_of_another_program_is_given_up),
        IN_WORLD(test_the_command_s_status_is_kept),
        IN_WORLD(test_one_that_does_not_stop_at_the_end),
    };
    return cmocka_run_group_tests_name("stops", tests, NULL, NULL);
}
