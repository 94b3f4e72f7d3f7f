/* The results of looks at a thread: what is reported to the worker, for how many ticks, and when
 * the next look comes. */
#include "fake/fake.h"

#define PID 100
#define TID 101

/* A process whose first thread sleeps, and another one. */
static struct fake_thread *begin_with(enum fake_doing doing)
{
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    struct fake_thread *thread = fake_thread(process, TID, doing);
    fake_begin();
    fake_ticks(1);
    return thread;
}

static void move(struct fake_thread *thread)
{
    thread->activity.switches++;
    thread->activity.running_ns += 1000;
}

static void test_a_sleeper_is_copied_once(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    const struct observation *first = fake_next_of(TID);
    assert_non_null(first);
    assert_int_equal(first->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(first->state, THREAD_SLEEPING);
    assert_int_equal(first->wait.syscall_number, 202);
    assert_true(first->before.begins && first->has_name);
    assert_string_equal(first->name, "thread-101");
    assert_int_equal(first->before.begin.at_ns, FAKE_START_NS);
    assert_true(first->before.begin.has_activity);
    assert_int_equal(first->ticks, 1);
    assert_int_equal(first->program ? 1 : 0, 0); /* the worker has dropped it */
    fake_ticks(20);
    assert_int_equal(fake_count(TID, EVIDENCE_ASLEEP), 0);
    assert_true(thread->looks > 2);
    assert_int_equal(thread->stops, 0);
}

static void test_a_long_sleep_is_told_each_second(void **state)
{
    (void)state;
    begin_with(FAKE_SLEEPS);
    fake_forget_told();
    fake_ticks(320);
    assert_in_range(fake_count(TID, EVIDENCE_UNMOVED), 2, 4);
    const struct observation *told = fake_next_of(TID);
    uint64_t ticks = 0, last_ns = 0;
    for (; told; told = fake_next_of(TID)) {
        assert_int_equal(told->evidence, EVIDENCE_UNMOVED);
        assert_true(told->now.at_ns > last_ns);
        assert_int_equal(told->now.at_ns, told->before.asleep.at_ns);
        last_ns = told->now.at_ns;
        ticks += told->before.asleep_ticks;
    }
    /* All ticks up to the last one that was reported. */
    uint64_t told_ns = last_ns - FAKE_START_NS;
    assert_in_range(ticks, told_ns / FAKE_PERIOD_NS - 1, told_ns / FAKE_PERIOD_NS + 1);
}

static void test_looks_at_a_long_sleep_get_rare(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_ticks(30);
    assert_in_range(thread->looks, 25, 31);
    unsigned looks = thread->looks;
    fake_ticks(300);
    assert_in_range(thread->looks - looks, 30, 150);
}

static void test_one_that_moved_is_copied_again(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_ticks(5);
    fake_forget_told();
    move(thread);
    thread->pc = 0x5000;
    fake_ticks(1);
    assert_int_equal(fake_count(TID, EVIDENCE_ASLEEP), 1);
    const struct observation *moved = fake_next_of(TID);
    assert_false(moved->before.begins || moved->has_name);
    assert_int_equal(moved->ticks, 1);
    assert_int_equal(moved->before.asleep_ticks, 5); /* at which it was proven to sleep before */
    assert_int_equal(fake->told[fake->told_next - 1].pc, 0x5000);
}

/* The thread is known to have slept until its process used more CPU time; the rest is assumed. */
static void test_a_gap_in_a_long_sleep_is_assumed(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_ticks(300);
    fake_forget_told();
    uint64_t assumed = fake->sampler.counts.samples_assumed;
    unsigned looks = thread->looks;
    move(thread);
    unsigned ticks = 0;
    while (!fake_count(TID, EVIDENCE_ASLEEP)) {
        fake_ticks(1);
        ticks++;
    }
    assert_in_range(ticks, 1, 3); /* because a thread has run unseen */
    assert_int_equal(thread->looks, looks + 1);
    assert_true(fake->sampler.counts.samples_assumed - assumed < 3);
    const struct observation *moved = fake_next_of(TID);
    assert_true(moved->before.asleep.at_ns > 0);
    assert_true(moved->ticks + moved->before.asleep_ticks >= ticks);
    assert_true(moved->ticks <= ticks + 1);
}

static void test_a_runner_is_stopped_and_told(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    assert_int_equal(thread->stops, 1);
    assert_int_equal(thread->stop.process_id, PID);
    assert_true(thread->stop.look.at_ns > FAKE_START_NS && thread->stop.look.has_activity);
    assert_int_equal(thread->stop.asleep.pc, 0);
    const struct observation *told = fake_next_of(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_STOPPED);
    assert_int_equal(told->state, THREAD_RUNNING);
    assert_int_equal(told->before.look.at_ns, thread->stop.look.at_ns);
    assert_true(told->now.at_ns >= told->before.look.at_ns);
    assert_int_equal(told->ticks, 1);
}

static void test_one_that_was_woken_is_told_without_a_copy(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_forget_told();
    thread->doing = FAKE_WOKEN;
    fake_ticks(1);
    const struct observation *told = fake_next_of(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_WOKEN);
    assert_int_equal(told->state, THREAD_RUNNABLE);
    assert_int_equal(told->ticks, 1);
    assert_false(fake->told[fake->told_next - 1].has_snapshot);
    assert_int_equal(thread->stops, 0);
}

static void test_one_that_is_gone_ends(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_forget_told();
    thread->doing = FAKE_GONE;
    fake_ticks(1);
    assert_int_equal(fake_count(TID, EVIDENCE_GONE), 1);
    const struct observation *told = fake_next_of(TID);
    assert_false(told->end.is_certain || told->end.is_at_end);
    assert_true(told->now.at_ns <= fake->now_ns);
    /* Its end is reported once, even if it stays in the list. */
    fake_ticks(5);
    fake_thread_leaves(thread);
    fake_ticks(5);
    fake_end();
    assert_int_equal(fake_count(TID, EVIDENCE_GONE), 0);
}

static void test_a_refusal_is_assumed_after_a_while(void **state)
{
    (void)state;
    begin_with(FAKE_REFUSES);
    assert_null(fake_next_of(TID)); /* no gap yet */
    fake_ticks(10);
    const struct observation *told;
    uint64_t ticks = 0;
    while ((told = fake_next_of(TID))) {
        assert_int_equal(told->evidence, EVIDENCE_ASSUMED);
        assert_int_equal(told->state, THREAD_RUNNABLE);
        ticks += told->ticks;
    }
    assert_in_range(ticks, 8, 11);
}

/* If the kernel samples running threads, they are not stopped. */
static void test_a_sleep_that_was_missed_counts_for_one_that_is_over(void **state)
{
    (void)state;
    fake->options.capture = CAPTURE_AUTO;
    struct fake_thread *thread = begin_with(FAKE_SLIPS);
    fake_ticks(3);
    fake_forget_told();
    thread->doing = FAKE_SLEEPS;
    fake_ticks(1);
    assert_int_equal(fake_next_of(TID)->missed_ticks, 0); /* the sleep did not end */
    thread->is_over = true;
    thread->pc++;
    move(thread);
    fake_ticks(1);
    assert_int_equal(fake_next_of(TID)->missed_ticks, 0); /* it is elsewhere */
    thread->pc--;
    for (unsigned i = 0; i < 2; i++) {
        move(thread);
        fake_ticks(1);
        const struct observation *told = fake_next_of(TID);
        assert_int_equal(told->ticks, 1);
        assert_int_equal(told->missed_ticks, i ? 0 : 4);
    }
}

/* A stop shows whether threads slept: observe/woken.h. */
static void test_no_sleep_is_missed_where_threads_are_stopped(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLIPS);
    thread->is_refused_stop = true;
    fake_ticks(3);
    fake_forget_told();
    thread->doing = FAKE_SLEEPS;
    thread->is_over = true;
    fake_ticks(1);
    assert_int_equal(fake_next_of(TID)->missed_ticks, 0);
}

static void test_the_call_of_a_waiter_with_an_owner_is_told_each_time(void **state)
{
    (void)state;
    struct fake_process *process = fake_process(PID);
    struct fake_thread *thread = fake_thread(process, PID, FAKE_SLEEPS);
    thread->has_call = true;
    fake_begin();
    fake_ticks(1);
    const struct observation *told = fake_next_of(PID);
    assert_true(told && told->wait.has_call);
    assert_int_equal(told->wait.call.kind, CALL_FUTEX);
    fake_ticks(5);
    assert_null(fake_next_of(PID)); /* it was not requested */
    fake_request_of(PID, (struct request){.kind = REQUEST_OWNER});
    fake_wake();
    fake_ticks(5);
    assert_int_equal(fake_count(PID, EVIDENCE_UNMOVED), 5);
    fake_request_of(PID, (struct request){.kind = REQUEST_NO_OWNER});
    fake_ticks(1);
    fake_forget_told();
    fake_ticks(5);
    assert_null(fake_next_of(PID));
}

/* A stack must not be reported with the mappings of another program. */
static void test_a_copy_of_another_program_is_given_up(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    fake_forget_told();
    thread->process->programs++;
    move(thread);
    fake_ticks(2);
    const struct fake_told *ended = fake_next(MESSAGE_PROGRAM_ENDED);
    assert_non_null(ended);
    assert_int_equal(ended->program, 0);
    const struct observation *told = fake_next_of(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(fake->told[fake->told_next - 1].program, 1);
}

static void test_each_tick_tells_who_is_awake(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    const struct fake_told *tick = fake_next(MESSAGE_TICK);
    assert_non_null(tick);
    assert_int_equal(tick->message.tick.thread_count, 1);
    assert_int_equal(tick->awake[0].tid, TID);
    assert_int_equal(tick->message.tick.ticks, 1);
    thread->doing = FAKE_SLEEPS;
    fake_ticks(3);
    assert_null(fake_next(MESSAGE_TICK)); /* ticks that find none are reported together */
    thread->doing = FAKE_RUNS;
    fake_ticks(1);
    tick = fake_next(MESSAGE_TICK);
    assert_non_null(tick);
    assert_int_equal(tick->message.tick.idle_ticks, 3);
    assert_int_equal(tick->message.tick.ticks, 1);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_a_sleeper_is_copied_once),
        IN_WORLD(test_a_long_sleep_is_told_each_second),
        IN_WORLD(test_looks_at_a_long_sleep_get_rare),
        IN_WORLD(test_one_that_moved_is_copied_again),
        IN_WORLD(test_a_gap_in_a_long_sleep_is_assumed),
        IN_WORLD(test_a_runner_is_stopped_and_told),
        IN_WORLD(test_one_that_was_woken_is_told_without_a_copy),
        IN_WORLD(test_one_that_is_gone_ends),
        IN_WORLD(test_a_refusal_is_assumed_after_a_while),
        IN_WORLD(test_a_sleep_that_was_missed_counts_for_one_that_is_over),
        IN_WORLD(test_no_sleep_is_missed_where_threads_are_stopped),
        IN_WORLD(test_the_call_of_a_waiter_with_an_owner_is_told_each_time),
        IN_WORLD(test_a_copy_of_another_program_is_given_up),
        IN_WORLD(test_each_tick_tells_who_is_awake),
    };
    return cmocka_run_group_tests_name("look", tests, NULL, NULL);
}
