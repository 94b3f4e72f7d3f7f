/* Samples that the kernel takes of running threads: which are reported, held or dropped, and which
 * threads are stopped nevertheless. */
#include "fake/fake.h"

#include <errno.h>

#define PID 100
#define TID 101

static struct fake_thread *begin_with(enum fake_doing doing)
{
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    struct fake_thread *thread = fake_thread(process, TID, doing);
    fake->options.capture = CAPTURE_AUTO;
    fake->options.max_pause_percent = 100;
    fake_begin();
    return thread;
}

/* The thread has a CPU all the time, and is sampled or not. */
static void run(struct fake_thread *thread, unsigned ticks, bool is_sampled)
{
    for (unsigned i = 0; i < ticks; i++) {
        thread->activity.running_ns += FAKE_PERIOD_NS;
        if (is_sampled)
            fake_sample(PID, thread->tid, fake->now_ns + 1000);
        fake_ticks(1);
    }
}

static void test_a_runner_is_sampled_and_not_stopped(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    run(thread, 20, true);
    assert_int_equal(thread->stops, 0);
    assert_int_equal(fake_count(TID, EVIDENCE_SAMPLED), 20);
    const struct observation *told = fake_next_of(TID);
    assert_int_equal(told->ticks, 1);
    assert_int_equal(told->state, THREAD_RUNNING);
    assert_int_equal(told->sampled.at_ns, FAKE_START_NS + 1000);
    assert_true(fake->told[fake->told_next - 1].has_snapshot);
    assert_int_equal(fake->sampler.counts.kernel_samples, 20);
    assert_int_equal(fake->sampler.counts.threads_kernel_sampled, 1);
    assert_true(fake->sampler.counts.has_kernel_samples);
}

static void test_why_others_are_not_filtered(void **state)
{
    (void)state;
    fake->filter_refusal = -EPERM;
    begin_with(FAKE_RUNS);
    assert_int_equal(fake->sampler.counts.filter_refusal, EPERM);
}

/* The thread's time is reported by looks that found it running. */
static void test_samples_carry_the_account_of_the_last_look(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    run(thread, 3, true);
    fake_forget_told();
    uint64_t running_ns = thread->activity.running_ns;
    run(thread, 1, true);
    const struct observation *told = fake_next_of(TID);
    assert_true(told->now.has_activity);
    assert_true(told->now.activity.running_ns >= running_ns);
    fake_sample(PID, TID, fake->now_ns);
    fake_sample(PID, TID, fake->now_ns + 1);
    run(thread, 1, false);
    assert_true(fake_next_of(TID)->now.at_ns > 0);
    assert_int_equal(fake_next_of(TID)->now.at_ns, 0); /* that was already reported */
}

/* The kernel only samples threads on a CPU, but there should be a stack of every thread. */
static void test_one_that_gets_no_cpu_is_stopped_once(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    fake_ticks(30); /* its running time does not grow */
    assert_int_equal(thread->stops, 1);
    assert_int_equal(fake->sampler.counts.threads_unsampled, 0);
}

static void test_one_that_runs_unsampled_for_long_is_stopped(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    run(thread, 10, true);
    unsigned forgotten = thread->forgotten;
    run(thread, 50, false);
    assert_int_equal(thread->stops, 0); /* it may be chance */
    assert_int_equal(fake->sampler.counts.threads_unsampled, 0);
    run(thread, 30, false);
    assert_true(thread->stops > 5);
    assert_int_equal(fake->sampler.counts.threads_unsampled, 1);
    assert_int_equal(thread->forgotten, forgotten + 1); /* so that it gets a new event */
    unsigned stops = thread->stops;
    run(thread, 10, true);
    assert_in_range(thread->stops, stops, stops + 1);
    assert_int_equal(fake->sampler.counts.threads_unsampled, 1);
}

static void test_a_sample_is_held_until_its_thread_is_listed(void **state)
{
    (void)state;
    begin_with(FAKE_SLEEPS);
    fake_ticks(3);
    fake_forget_told();
    fake_thread(fake_find_process(PID), TID + 1, FAKE_RUNS);
    fake_sample(PID, TID + 1, fake->now_ns + 1);
    fake_ticks(1);
    assert_int_equal(fake_count(TID + 1, EVIDENCE_SAMPLED), 1);
    assert_int_equal(fake->sampler.counts.kernel_samples_dropped, 0);
}

static void test_a_sample_of_a_thread_that_was_never_listed_is_dropped(void **state)
{
    (void)state;
    begin_with(FAKE_SLEEPS);
    fake_ticks(3);
    fake_sample(PID, TID + 1, fake->now_ns + 1);
    fake_sample(PID, TID, fake->now_ns + 1);
    fake_ticks(1);
    assert_int_equal(fake->sampler.counts.kernel_samples_dropped, 1);
    assert_int_equal(fake_count(TID, EVIDENCE_SAMPLED), 1);
    assert_int_equal(atomic_load(&fake->sampler.progress.samples_lost), 1);
}

/* More samples than can be held at a time. */
static void test_many_samples_of_unknown_threads(void **state)
{
    (void)state;
    begin_with(FAKE_SLEEPS);
    fake_ticks(2);
    for (pid_t i = 0; i < 100; i++)
        fake_sample(PID, TID + 1 + i, fake->now_ns + 1);
    fake_sample(PID, TID, fake->now_ns + 1);
    fake_ticks(1);
    assert_int_equal(fake->sampler.counts.kernel_samples_dropped, 100);
    assert_int_equal(fake_count(TID, EVIDENCE_SAMPLED), 1);
}

static void test_samples_from_before_and_after_do_not_count(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    fake_sample(PID, TID, FAKE_START_NS - 1);
    run(thread, 2, false);
    assert_int_equal(fake_count(TID, EVIDENCE_SAMPLED), 0);
    fake->now_ns += 1000;
    fake_sample(PID, TID, fake->now_ns - 1);
    fake_sample(PID, TID, fake->now_ns + 1);
    fake_end();
    assert_int_equal(fake_count(TID, EVIDENCE_SAMPLED), 1);
    assert_int_equal(fake->sampler.counts.kernel_samples_dropped, 0);
}

static void test_one_without_an_event_is_stopped_and_counted(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    thread->has_no_event = true;
    run(thread, 10, false);
    assert_int_equal(thread->stops, 10);
    assert_int_equal(fake->sampler.counts.threads_without_event, 1);
    assert_int_equal(fake->sampler.counts.event_refusal, EMFILE);
}

/* The other processes are still sampled, and this one is not left out. */
static void test_a_process_that_can_t_be_followed_is_stopped_and_counted(void **state)
{
    (void)state;
    struct fake_process *process = fake_process(PID);
    struct fake_thread *thread = fake_thread(process, PID, FAKE_RUNS);
    struct fake_process *other = fake_process(PID + 50);
    struct fake_thread *refused = fake_thread(other, PID + 50, FAKE_RUNS);
    other->is_samples_refused = true;
    fake->options.capture = CAPTURE_AUTO;
    fake->options.max_pause_percent = 100;
    fake_begin();
    for (unsigned i = 0; i < 10; i++) {
        refused->activity.running_ns += FAKE_PERIOD_NS;
        run(thread, 1, true);
    }
    assert_int_equal(fake_count(PID, EVIDENCE_SAMPLED), 10);
    assert_int_equal(refused->stops, 10);
    assert_int_equal(fake_count(PID + 50, EVIDENCE_STOPPED), 10);
    assert_int_equal(fake->sampler.counts.threads_without_event, 1);
}

/* The same for a process that is found later. */
static void test_a_descendant_that_can_t_be_followed_is_sampled(void **state)
{
    (void)state;
    fake->options.has_children = true;
    begin_with(FAKE_SLEEPS);
    fake_ticks(2);
    struct fake_process *child = fake_process(PID + 50);
    fake_thread(child, PID + 50, FAKE_SLEEPS);
    child->is_samples_refused = true;
    fake->born[fake->born_count++] = (struct relative){.pid = PID + 50, .unseen_ns = fake->now_ns};
    fake_ticks(2);
    assert_int_equal(fake->sampler.counts.processes_refused, 0);
    assert_int_equal(fake_count(PID + 50, EVIDENCE_ASLEEP), 1);
}

static void test_without_snapshots_samples_wait(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    run(thread, 2, true);
    fake_forget_told();
    fake_hoard(0);
    run(thread, 5, true);
    assert_int_equal(fake_count(TID, EVIDENCE_SAMPLED), 0);
    fake_hoard_no_more();
    run(thread, 1, true);
    assert_int_equal(fake_count(TID, EVIDENCE_SAMPLED), 6);
    uint64_t last_ns = 0;
    const struct observation *told;
    while ((told = fake_next_of(TID))) {
        assert_true(told->sampled.at_ns > last_ns);
        last_ns = told->sampled.at_ns;
    }
}

/* A sample belongs to the program that ran then. */
static void test_an_exec_between_samples(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    run(thread, 3, true);
    fake_forget_told();
    fake_sample(PID, TID, fake->now_ns + 1000);
    fake_find_process(PID)->exec_ns = fake->now_ns + 2000;
    fake_find_process(PID)->programs++;
    fake_sample(PID, TID, fake->now_ns + 3000);
    run(thread, 1, false);
    const struct observation *told = fake_next_of(TID);
    assert_non_null(told);
    assert_int_equal(fake->told[fake->told_next - 1].program, 0);
    assert_non_null(fake_next(MESSAGE_PROGRAM_ENDED));
    told = fake_next_of(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_SAMPLED);
    assert_int_equal(fake->told[fake->told_next - 1].program, 1);
}

static void test_what_the_kernel_lost_is_counted(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    fake->samples_lost = 5;
    run(thread, 1, true);
    assert_int_equal(fake->sampler.counts.kernel_samples_lost, 5);
    assert_int_equal(atomic_load(&fake->sampler.progress.samples_lost), 5);
}

static void test_without_permission_runners_are_stopped(void **state)
{
    (void)state;
    fake->kernel_error = -EACCES;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    run(thread, 5, false);
    assert_int_equal(thread->stops, 5);
    assert_false(fake->sampler.counts.has_kernel_samples);
    assert_int_equal(fake->sampler.counts.kernel_refusal, EACCES);
}

static void test_stacks_that_need_more_get_more(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    run(thread, 2, true);
    fake_request_of(TID, (struct request){.kind = REQUEST_STACK, .stack_limit = 40000});
    run(thread, 3, true);
    assert_int_equal(fake->adjusted_stack_limit, 40000);
    fake_request_of(TID, (struct request){.kind = REQUEST_STACK, .stack_limit = 4096});
    run(thread, 5, true);
    assert_int_equal(fake->adjusted_stack_limit, 40000); /* it may be needed again soon */
    run(thread, 250, true);
    assert_int_equal(fake->adjusted_stack_limit, 4096);
}

/* The thread loses its CPU often, which samples do not show. */
static void wait_for_a_cpu(struct fake_thread *thread, uint64_t switches_per_s)
{
    uint64_t switches = 0;
    for (uint64_t ns = FAKE_PERIOD_NS; ns <= 20 * FAKE_PERIOD_NS; ns += FAKE_PERIOD_NS) {
        thread->activity.waiting_ns += FAKE_PERIOD_NS / 2;
        thread->activity.switches += ns * switches_per_s / 1000000000 - switches;
        switches = ns * switches_per_s / 1000000000;
        run(thread, 1, true);
    }
}

static void test_one_that_waits_for_a_cpu_is_seen_by_its_switches(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_WAITS);
    wait_for_a_cpu(thread, 900);
    assert_true(thread->is_armed);
    assert_true(fake_count(TID, EVIDENCE_WAITING) >= 5);
    fake_forget_told();
    thread->doing = FAKE_RUNS;
    run(thread, 1, true);
    assert_true(fake_next_of(TID)->sampled.waits_are_seen);
}

/* An event that is always enabled would cost the thread more than it is worth. */
static void test_one_that_is_switched_often_has_an_event_before_ticks(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_WAITS);
    wait_for_a_cpu(thread, 1100);
    assert_true(!thread->is_armed && thread->has_window);
    wait_for_a_cpu(thread, 900);
    assert_true(thread->is_armed && !thread->has_window);
    wait_for_a_cpu(thread, 1100);
    assert_true(!thread->is_armed && thread->has_window);
    wait_for_a_cpu(thread, 100000);
    assert_true(!thread->is_armed && !thread->has_window);
}

static void test_one_that_is_no_longer_chosen_has_no_event(void **state)
{
    (void)state;
    assert_int_equal(thread_choice_set_name(&fake->options.choice, "thread"), 0);
    struct fake_thread *thread = begin_with(FAKE_WAITS);
    wait_for_a_cpu(thread, 900);
    assert_true(thread->is_armed);
    unsigned forgotten = thread->forgotten;
    strcpy(thread->name, "another");
    wait_for_a_cpu(thread, 900);
    assert_false(thread->is_armed);
    assert_int_equal(thread->forgotten, forgotten + 1);
    thread_choice_free(&fake->options.choice);
}

/* ---- Sleeps that are over before the look ---- */

/* The thread runs, and has slept now and then since the last tick. */
static void sleep_now_and_then(struct fake_thread *thread, unsigned ticks, uint64_t switches)
{
    for (unsigned i = 0; i < ticks; i++) {
        thread->activity.running_ns += FAKE_PERIOD_NS / 2;
        thread->activity.switches += switches;
        fake_sample(PID, thread->tid, fake->now_ns + 1000);
        fake_ticks(1);
    }
}

static const struct observation *next_asleep(void)
{
    const struct observation *told = fake_next_of(TID);
    while (told && told->evidence != EVIDENCE_ASLEEP)
        told = fake_next_of(TID);
    assert_non_null(told);
    return told;
}

static void test_a_short_sleep_is_observed_where_it_was(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    sleep_now_and_then(thread, 20, 5);
    assert_true(thread->has_window && !thread->is_armed);
    fake_forget_told();
    thread->slept_pc = 0x7000;
    sleep_now_and_then(thread, 3, 5);
    assert_int_equal(fake_count(TID, EVIDENCE_ASLEEP), 3);
    const struct observation *told = next_asleep();
    assert_int_equal(fake->told[fake->told_next - 1].pc, 0x7000);
    assert_int_equal(told->ticks, 1);
    assert_true(told->asleep.is_over);
    thread->slept_pc = 0;
    fake_forget_told();
    sleep_now_and_then(thread, 3, 5);
    assert_int_equal(fake_count(TID, EVIDENCE_ASLEEP), 0);
    assert_int_equal(thread->stops, 0);
}

/* The look found the sleep that came after it. */
static void test_a_short_sleep_before_another(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    sleep_now_and_then(thread, 20, 5);
    fake_forget_told();
    thread->slept_pc = 0x7000;
    sleep_now_and_then(thread, 1, 5);
    thread->slept_pc = 0;
    fake_ticks(1);
    assert_int_equal(next_asleep()->ticks, 1);
    assert_int_equal(fake->told[fake->told_next - 1].pc, 0x7000);
    assert_int_equal(next_asleep()->ticks, 1); /* it is copied again */
    assert_int_equal(fake->told[fake->told_next - 1].pc, thread->pc);
}

/* Then only samples say where it runs: it must not be stopped, because it sleeps again. */
static void test_one_that_was_awake_and_sleeps_again(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    sleep_now_and_then(thread, 20, 5);
    fake_forget_told();
    thread->was_awake = true;
    for (unsigned i = 0; i < 50; i++) {
        thread->activity.running_ns += FAKE_PERIOD_NS / 2;
        thread->activity.switches += 5;
        fake_ticks(1);
    }
    assert_int_equal(fake_count(TID, EVIDENCE_ASLEEP), 0);
    assert_int_equal(thread->stops, 0);
    thread->was_awake = false;
    sleep_now_and_then(thread, 1, 5);
    assert_int_equal(next_asleep()->ticks, 1);
}

static void test_switches_are_recorded_shortly_before_ticks(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_RUNS);
    sleep_now_and_then(thread, 20, 5);
    unsigned opened = fake->windows_opened;
    for (unsigned i = 0; i < 10; i++) {
        sleep_now_and_then(thread, 1, 5);
        assert_false(fake->is_window_open);
        assert_true(thread->looked_ns > fake->window_opened_ns);
        assert_true(thread->looked_ns - fake->window_opened_ns <= FAKE_PERIOD_NS / 10);
    }
    assert_int_equal(fake->windows_opened, opened + 10);
}

static void test_who_has_no_event_before_ticks(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with(FAKE_SLEEPS);
    sleep_now_and_then(thread, 20, 5);
    assert_true(thread->has_window);
    fake_ticks(200); /* a long sleep */
    assert_false(thread->has_window);
    for (unsigned i = 0; i < 20; i++)
        sleep_now_and_then(thread, 1, i % 2);
    assert_false(thread->has_window); /* 50 a second are not worth it */
    fake->options.has_kernel_stacks = true;
    sleep_now_and_then(thread, 20, 5);
    assert_false(thread->has_window);
}

static void test_waits_that_can_t_be_seen_are_counted(void **state)
{
    (void)state;
    fake->arm_error = -ENOSPC;
    struct fake_thread *thread = begin_with(FAKE_WAITS);
    for (unsigned i = 0; i < 40; i++) {
        thread->activity.waiting_ns += FAKE_PERIOD_NS / 2;
        thread->activity.switches++;
        run(thread, 1, true);
    }
    assert_int_equal(fake->sampler.counts.threads_waits_unseen, 1);
    assert_int_equal(fake->sampler.counts.waits_refusal, ENOSPC);
}

static void test_a_dump_waits_for_a_sample(void **state)
{
    (void)state;
    struct fake_process *process = fake_process(PID);
    fake->options.capture = CAPTURE_AUTO;
    fake->options.is_dump = true;
    struct fake_thread *sampled = fake_thread(process, PID, FAKE_RUNS);
    struct fake_thread *unsampled = fake_thread(process, PID + 1, FAKE_RUNS);
    fake_begin();
    for (unsigned steps = 0; fake_step() && steps < 1000; steps++) {
        if (steps == 2)
            fake_sample(PID, PID, fake->now_ns);
    }
    assert_true(fake->has_ended);
    assert_int_equal(sampled->stops, 0);
    assert_int_equal(fake_count(PID, EVIDENCE_SAMPLED), 1);
    assert_int_equal(unsampled->stops, 1);
    assert_int_equal(fake_count(PID + 1, EVIDENCE_STOPPED), 1);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_a_runner_is_sampled_and_not_stopped),
        IN_WORLD(test_why_others_are_not_filtered),
        IN_WORLD(test_samples_carry_the_account_of_the_last_look),
        IN_WORLD(test_one_that_gets_no_cpu_is_stopped_once),
        IN_WORLD(test_one_that_runs_unsampled_for_long_is_stopped),
        IN_WORLD(test_a_sample_is_held_until_its_thread_is_listed),
        IN_WORLD(test_a_sample_of_a_thread_that_was_never_listed_is_dropped),
        IN_WORLD(test_many_samples_of_unknown_threads),
        IN_WORLD(test_samples_from_before_and_after_do_not_count),
        IN_WORLD(test_one_without_an_event_is_stopped_and_counted),
        IN_WORLD(test_a_process_that_can_t_be_followed_is_stopped_and_counted),
        IN_WORLD(test_a_descendant_that_can_t_be_followed_is_sampled),
        IN_WORLD(test_without_snapshots_samples_wait),
        IN_WORLD(test_an_exec_between_samples),
        IN_WORLD(test_what_the_kernel_lost_is_counted),
        IN_WORLD(test_without_permission_runners_are_stopped),
        IN_WORLD(test_stacks_that_need_more_get_more),
        IN_WORLD(test_one_that_waits_for_a_cpu_is_seen_by_its_switches),
        IN_WORLD(test_one_that_is_switched_often_has_an_event_before_ticks),
        IN_WORLD(test_one_that_is_no_longer_chosen_has_no_event),
        IN_WORLD(test_a_short_sleep_is_observed_where_it_was),
        IN_WORLD(test_a_short_sleep_before_another),
        IN_WORLD(test_one_that_was_awake_and_sleeps_again),
        IN_WORLD(test_switches_are_recorded_shortly_before_ticks),
        IN_WORLD(test_who_has_no_event_before_ticks),
        IN_WORLD(test_waits_that_can_t_be_seen_are_counted),
        IN_WORLD(test_a_dump_waits_for_a_sample),
    };
    return cmocka_run_group_tests_name("kernel_samples", tests, NULL, NULL);
}
