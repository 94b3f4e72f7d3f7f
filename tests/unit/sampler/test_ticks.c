/* Ticks: which threads each one looks at, and what is reported when threads, processes or the
 * recording end. */
#include "fake/fake.h"

#include <unistd.h>
#include <errno.h>

#define PID 100
#define MANY 60
#define LOOK_NS 300000u /* so that a tick has no time for all of them */

static struct fake_process *begin_with(unsigned threads, enum fake_doing doing)
{
    struct fake_process *process = fake_process(PID);
    for (unsigned i = 0; i < threads; i++)
        fake_thread(process, PID + (pid_t)i, doing);
    fake_begin();
    return process;
}

static void test_each_tick_looks_at_each_thread(void **state)
{
    (void)state;
    begin_with(5, FAKE_SLEEPS);
    for (unsigned tick = 1; tick <= 10; tick++) {
        fake_ticks(1);
        for (pid_t tid = PID; tid < PID + 5; tid++)
            assert_int_equal(fake_find(tid)->looks, tick);
    }
    assert_int_equal(fake->sampler.counts.ticks_taken, 10);
    assert_int_equal(fake->sampler.counts.ticks_planned, 10);
}

static void test_a_tick_goes_on_where_the_one_before_stopped(void **state)
{
    unsigned looks[MANY] = {0};
    (void)state;
    begin_with(MANY, FAKE_SLEEPS);
    fake->look_ns = LOOK_NS;
    fake_ticks(1);
    assert_true(fake_find(PID)->looks == 1);
    assert_int_equal(fake_find(PID + MANY - 1)->looks, 0);
    for (unsigned i = 0; i < MANY; i++)
        looks[i] = fake_find(PID + (pid_t)i)->looks;
    for (unsigned tick = 0; tick < 40; tick++) {
        unsigned least = UINT32_MAX, most = 0, all = 0;
        uint64_t taken = fake->sampler.counts.ticks_taken;
        fake_ticks(1); /* or two, if these are close together */
        for (unsigned i = 0; i < MANY; i++) {
            unsigned now = fake_find(PID + (pid_t)i)->looks;
            least = now < least ? now : least;
            most = now > most ? now : most;
            all += now - looks[i];
            looks[i] = now;
        }
        assert_true(most - least <= 1);
        taken = fake->sampler.counts.ticks_taken - taken;
        assert_in_range(all, 3 * taken, 12 * taken); /* of a fifth of the period each */
    }
}

static uint64_t last_look_ns(void)
{
    uint64_t last_ns = 0;
    for (size_t i = 0; i < fake->thread_count; i++) {
        uint64_t looked_ns = fake->threads[i].looked_ns;
        last_ns = looked_ns > last_ns ? looked_ns : last_ns;
    }
    return last_ns;
}

/* Looks at all processes come before any ring is read, list made, or name read. */
static void test_looks_come_before_all_else(void **state)
{
    unsigned names = 0;
    (void)state;
    struct fake_process *process = fake_process(PID), *other = fake_process(PID + 10);
    for (pid_t i = 0; i < 3; i++)
        fake_thread(process, PID + i, FAKE_SLEEPS);
    fake_thread(other, PID + 10, FAKE_SLEEPS);
    fake->options.capture = CAPTURE_AUTO;
    fake->options.has_children = true;
    fake_begin();
    fake_ticks(1);
    fake->look_ns = 2000;
    for (unsigned tick = 0; tick < 20; tick++) {
        uint64_t began_ns = fake->now_ns;
        fake->rings_read_ns = 0;
        fake_ticks(1);
        uint64_t looked_ns = last_look_ns();
        assert_true(process->counted_ns > looked_ns && other->counted_ns > looked_ns);
        assert_true(fake->sought_ns > looked_ns && fake->rings_read_ns > looked_ns);
        names += process->named_ns > began_ns;
        assert_true(process->named_ns <= began_ns || process->named_ns > looked_ns);
    }
    assert_in_range(names, 3, 20);
}

static bool samples_come_first_now(void)
{
    fake->rings_read_ns = 0;
    fake_ticks(1);
    return fake->rings_read_ns < last_look_ns();
}

/* Otherwise, looks that are left over at each tick would take all snapshots. */
static void test_samples_come_first_if_looks_were_left_over(void **state)
{
    (void)state;
    fake->options.capture = CAPTURE_AUTO;
    begin_with(MANY, FAKE_SLEEPS);
    fake_ticks(1);
    fake->look_ns = LOOK_NS;
    assert_false(samples_come_first_now());
    assert_true(samples_come_first_now());
}

/* A sample's context is compared with that of the look before it. */
static void test_samples_come_first_if_they_have_a_context(void **state)
{
    (void)state;
    fake->options.capture = CAPTURE_AUTO;
    begin_with(2, FAKE_SLEEPS);
    fake_ticks(1);
    fake->look_ns = 2000;
    assert_false(samples_come_first_now());
    fake->sampler.processes[0]->context.kind = CONTEXT_STATIC;
    assert_true(samples_come_first_now());
}

static void test_threads_that_move_are_looked_at_first(void **state)
{
    (void)state;
    begin_with(5, FAKE_SLEEPS);
    struct fake_thread *moves = fake_find(PID + 3);
    fake->look_ns = 2000;
    fake_ticks(3);
    for (unsigned tick = 0; tick < 10; tick++) {
        moves->activity.switches++;
        fake_ticks(1);
        if (tick > 0) /* the first one found it moved */
            assert_true(moves->looked_ns < fake_find(PID)->looked_ns);
    }
}

static void test_a_thread_that_executes_a_program_is_looked_at_in_that_tick(void **state)
{
    (void)state;
    struct fake_process *process = begin_with(1, FAKE_SLEEPS);
    struct fake_thread *thread = fake_find(PID);
    fake_ticks(3);
    fake_forget_told();
    struct sampled_process *sampled = fake->sampler.processes[0];
    sampled->goroutines.left_out = 7;
    process->programs++;
    thread->activity.switches++;
    fake_ticks(1);
    const struct observation *told = fake_next_of(PID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->ticks, 1);
    assert_int_equal(sampled->goroutines.left_out, 0); /* those were of the other program */
}

static void test_ticks_without_a_look_are_counted_with_the_next(void **state)
{
    uint64_t ticks = 0;
    const struct observation *told;
    (void)state;
    begin_with(MANY, FAKE_RUNS);
    fake->options.max_pause_percent = 100;
    fake->look_ns = LOOK_NS;
    fake_ticks(60);
    while ((told = fake_next_of(PID + MANY / 2)))
        ticks += told->ticks;
    assert_in_range(ticks, 45, 60);
}

static void test_a_worker_that_is_behind_defers_looks(void **state)
{
    (void)state;
    struct fake_process *process = begin_with(5, FAKE_SLEEPS);
    fake_ticks(1);
    fake_forget_told();
    fake_hoard(0);
    for (unsigned i = 0; i < 5; i++)
        process->threads[i]->activity.switches++;
    uint64_t deferred = fake->sampler.counts.observations_put_off;
    fake_ticks(1);
    /* The sampler had one snapshot at most. */
    unsigned told = fake_count(PID, EVIDENCE_ASLEEP);
    assert_true(told <= 1);
    assert_true(fake->sampler.counts.observations_put_off - deferred >= 4);
    fake_ticks(2);
    fake_hoard_no_more();
    fake_ticks(1);
    for (pid_t tid = PID; tid < PID + 5; tid++)
        assert_int_equal(fake_count(tid, EVIDENCE_ASLEEP), 1);
    const struct observation *last = fake_next_of(PID + 4);
    assert_int_equal(last->ticks, 4); /* it represents all */
}

/* Looks that need no snapshot are deferred too, so that the worker's backlog is bounded. */
static void test_a_worker_that_is_far_behind_is_told_nothing(void **state)
{
    (void)state;
    begin_with(5, FAKE_RUNS);
    fake_ticks(2);
    fake_fall_behind();
    uint64_t deferred = fake->sampler.counts.observations_put_off;
    uint64_t sent = channel_sent(fake->channel);
    fake_ticks(3);
    assert_int_equal(channel_sent(fake->channel), sent);
    assert_true(fake->sampler.counts.observations_put_off - deferred >= 5);
}

static void test_late_ticks_are_planned_and_counted(void **state)
{
    (void)state;
    begin_with(2, FAKE_SLEEPS);
    fake_ticks(3);
    fake_forget_told();
    fake_find(PID)->activity.switches++;
    fake->now_ns += 5 * FAKE_PERIOD_NS;
    fake_ticks(1);
    assert_int_equal(fake->sampler.counts.ticks_taken, 4);
    assert_in_range(fake->sampler.counts.ticks_planned, 8, 9);
    const struct observation *told = fake_next_of(PID);
    assert_non_null(told);
    assert_in_range(told->ticks, 5, 6);
}

static void test_threads_come_and_go(void **state)
{
    (void)state;
    struct fake_process *process = begin_with(2, FAKE_SLEEPS);
    fake_ticks(3);
    fake_forget_told();
    uint64_t before_ns = fake->now_ns;
    struct fake_thread *late = fake_thread(process, PID + 7, FAKE_SLEEPS);
    fake_ticks(1);
    const struct observation *told = fake_next_of(PID + 7);
    assert_non_null(told);
    assert_true(told->before.begins && told->before.begin.has_activity);
    assert_int_equal(told->before.begin.activity.running_ns, 0);
    assert_in_range(told->before.begin.at_ns, FAKE_START_NS, before_ns);
    assert_true(told->now.at_ns > told->before.begin.at_ns);
    fake_thread_leaves(late);
    fake_ticks(1);
    assert_int_equal(fake_count(PID + 7, EVIDENCE_GONE), 1);
    told = fake_next_of(PID + 7);
    assert_true(told->now.at_ns >= before_ns && told->now.at_ns <= fake->now_ns);
    assert_false(told->end.is_at_end);
    fake_ticks(3);
    fake_end();
    assert_int_equal(fake_count(PID + 7, EVIDENCE_GONE), 0);
    assert_int_equal(fake->sampler.counts.threads_seen, 3);
}

static void test_a_thread_with_another_name_is_told(void **state)
{
    (void)state;
    begin_with(1, FAKE_SLEEPS);
    fake_ticks(2);
    fake_forget_told();
    strcpy(fake_find(PID)->name, "renamed");
    fake_find(PID)->activity.running_ns++; /* changing it takes CPU time */
    fake_ticks(5);
    const struct observation *told = fake_next_of(PID);
    assert_non_null(told);
    assert_true(told->has_name);
    assert_string_equal(told->name, "renamed");
}

static void test_the_end_of_a_process(void **state)
{
    (void)state;
    struct fake_process *process = begin_with(2, FAKE_SLEEPS);
    struct fake_process *other = fake_process(PID + 50);
    fake_thread(other, PID + 50, FAKE_SLEEPS);
    assert_int_equal(processes_add(&fake->sampler, PID + 50), 0);
    fake_ticks(3);
    fake_forget_told();
    const struct sampled_process *sampled = sampler_process(&fake->sampler, PID);
    uint32_t first = sampled->threads.items[0].number;
    assert_int_equal(watches_get(&fake->sampler.watches, first)->schedstat.fd_plus_1, 0);
    watches_get(&fake->sampler.watches, first)->schedstat.fd_plus_1 = dup(STDIN_FILENO) + 1;
    for (unsigned i = 0; i < 2; i++)
        process->threads[i]->doing = FAKE_GONE; /* its first thread stays a zombie */
    fake_ticks(2);
    assert_int_equal(watches_get(&fake->sampler.watches, first)->schedstat.fd_plus_1, 0);
    assert_int_equal(fake_count(PID, EVIDENCE_GONE), 1);
    assert_int_equal(fake_count(PID + 1, EVIDENCE_GONE), 1);
    size_t from = fake->told_next;
    const struct fake_told *ended = fake_next(MESSAGE_PROGRAM_ENDED);
    assert_non_null(ended);
    assert_null(fake_next(MESSAGE_PROGRAM_ENDED)); /* the other one continues */
    fake->told_next = from;
    const struct fake_told *tick = fake_next(MESSAGE_TICK);
    while (tick && !tick->message.tick.end_ns)
        tick = fake_next(MESSAGE_TICK);
    assert_non_null(tick);
    assert_int_equal(tick->message.tick.process, 0);
    assert_false(fake->has_ended);
    other->threads[0]->doing = FAKE_GONE;
    while (fake_step()) {
    }
    assert_int_equal(fake->result, 0);
    assert_non_null(fake_next(MESSAGE_END));
}

static void test_an_id_that_is_used_again(void **state)
{
    (void)state;
    struct sampled_process first = {.process.pid = PID, .has_exited = true},
                           second = {.process.pid = PID};
    struct sampled_process *processes[] = {&first, &second};
    const struct sampler sampler = {.processes = processes, .process_count = 2};
    assert_ptr_equal(sampler_process(&sampler, PID), &second);
    second.has_exited = true;
    assert_non_null(sampler_process(&sampler, PID));
    assert_null(sampler_process(&sampler, PID + 1));
}

static void test_the_end_of_the_recording(void **state)
{
    (void)state;
    begin_with(3, FAKE_SLEEPS);
    fake_ticks(5);
    fake_forget_told();
    fake->now_ns += 3000000;
    fake_end();
    uint64_t end_ns = fake->sampler.clock.end_ns;
    for (pid_t tid = PID; tid < PID + 3; tid++)
        assert_int_equal(fake_count(tid, EVIDENCE_GONE), 1);
    size_t from = fake->told_next;
    const struct observation *told = fake_next_of(PID);
    while (told->evidence != EVIDENCE_GONE)
        told = fake_next_of(PID);
    assert_int_equal(told->now.at_ns, end_ns);
    assert_true(told->end.is_at_end && told->end.is_certain && told->end.never_moved);
    fake->told_next = from;
    assert_non_null(fake_next(MESSAGE_PROGRAM_ENDED));
    assert_int_equal(fake->told[fake->told_count - 1].message.kind, MESSAGE_END);
}

static void test_one_that_moved_is_no_idle_one(void **state)
{
    (void)state;
    begin_with(1, FAKE_SLEEPS);
    fake_ticks(2);
    fake_find(PID)->activity.switches++;
    fake_ticks(2);
    fake_forget_told();
    fake_end();
    const struct observation *told = fake_next_of(PID);
    while (told->evidence != EVIDENCE_GONE)
        told = fake_next_of(PID);
    assert_false(told->end.never_moved);
}

static void test_the_duration(void **state)
{
    (void)state;
    fake->options.duration_ns = 10 * FAKE_PERIOD_NS;
    begin_with(1, FAKE_SLEEPS);
    while (fake_step()) {
    }
    assert_int_equal(fake->result, 0);
    assert_int_equal(fake->sampler.counts.ticks_taken, 10);
    assert_int_equal(fake->sampler.clock.end_ns, FAKE_START_NS + 10 * FAKE_PERIOD_NS);
}

static void test_descendants_are_taken_in(void **state)
{
    (void)state;
    fake->options.has_children = true;
    begin_with(1, FAKE_SLEEPS);
    fake_ticks(2);
    fake_forget_told();
    struct fake_process *child = fake_process(PID + 50);
    fake_thread(child, PID + 50, FAKE_SLEEPS);
    fake->born[0] = (struct relative){.pid = PID + 50, .unseen_ns = fake->now_ns};
    fake->born[1] = (struct relative){.pid = PID + 60}; /* gone already */
    fake->born_count = 2;
    fake_ticks(1);
    const struct fake_told *process = fake_next(MESSAGE_PROCESS);
    assert_non_null(process);
    assert_int_equal(process->message.process.pid, PID + 50);
    assert_int_equal(process->message.process.number, 1);
    assert_string_equal(process->message.process.name, "thread-150");
    const struct observation *told = fake_next_of(PID + 50);
    assert_non_null(told);
    assert_int_equal(told->process, 1);
    assert_int_equal(fake->sampler.counts.processes_refused, 0);
    child->threads[0]->doing = FAKE_GONE;
    fake_ticks(2);
    assert_int_equal(fake_count(PID + 50, EVIDENCE_GONE), 1);
    fake_thread_leaves(child->threads[0]);
    fake_ticks(2);
}

/* All sleepers are reported before a copy is made. */
static void test_a_copy(void **state)
{
    (void)state;
    begin_with(3, FAKE_SLEEPS);
    fake_ticks(40);
    fake_forget_told();
    atomic_store(&fake->sampler.progress.wants_copy, true);
    fake_ticks(2);
    const struct fake_told *copy = fake_next(MESSAGE_COPY);
    assert_non_null(copy);
    size_t until = fake->told_next;
    assert_false(atomic_load(&fake->sampler.progress.wants_copy));
    for (pid_t tid = PID; tid < PID + 3; tid++) {
        unsigned seen = 0;
        for (size_t i = 0; i < until; i++) {
            const struct observation *told = &fake->told[i].message.observation;
            seen += fake->told[i].message.kind == MESSAGE_OBSERVATION && told->tid == tid &&
                    told->now.at_ns > fake->now_ns - 3 * FAKE_PERIOD_NS;
        }
        assert_true(seen > 0);
    }
    fake_ticks(5);
    assert_null(fake_next(MESSAGE_COPY));
}

static void test_moments(void **state)
{
    (void)state;
    unsigned count = 0;
    fake->options.moment_every_ns = 20 * FAKE_PERIOD_NS;
    begin_with(2, FAKE_SLEEPS);
    fake_ticks(105);
    while (fake_next(MESSAGE_MOMENT))
        count++;
    assert_in_range(count, 4, 6);
}

static void test_a_dump_takes_each_thread_once(void **state)
{
    (void)state;
    struct fake_process *process = fake_process(PID);
    fake->options.is_dump = true;
    fake_thread(process, PID, FAKE_SLEEPS);
    fake_thread(process, PID + 1, FAKE_RUNS);
    fake_thread(process, PID + 2, FAKE_REFUSES);
    fake_begin();
    while (fake_step()) {
    }
    assert_int_equal(fake->result, 0);
    assert_int_equal(fake_count(PID, EVIDENCE_ASLEEP), 1);
    assert_int_equal(fake_count(PID + 1, EVIDENCE_STOPPED), 1);
    assert_int_equal(fake_count(PID + 2, EVIDENCE_GONE), 1);
    assert_int_equal(fake_find(PID + 1)->stops, 1);
    assert_null(fake_next(MESSAGE_TICK));
}

static void test_only_chosen_threads_are_looked_at(void **state)
{
    (void)state;
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    fake_thread(process, PID + 1, FAKE_SLEEPS);
    assert_int_equal(thread_choice_set_name(&fake->options.choice, "-101$"), 0);
    fake_begin();
    fake_ticks(5);
    assert_int_equal(fake_find(PID)->looks, 0);
    assert_int_equal(fake_find(PID + 1)->looks, 5);
    assert_null(fake_next_of(PID));
    assert_int_equal(fake->sampler.counts.threads_seen, 2);
    assert_int_equal(fake->sampler.counts.threads_chosen, 1);
    thread_choice_free(&fake->options.choice);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_each_tick_looks_at_each_thread),
        IN_WORLD(test_a_tick_goes_on_where_the_one_before_stopped),
        IN_WORLD(test_looks_come_before_all_else),
        IN_WORLD(test_samples_come_first_if_looks_were_left_over),
        IN_WORLD(test_samples_come_first_if_they_have_a_context),
        IN_WORLD(test_threads_that_move_are_looked_at_first),
        IN_WORLD(test_a_thread_that_executes_a_program_is_looked_at_in_that_tick),
        IN_WORLD(test_ticks_without_a_look_are_counted_with_the_next),
        IN_WORLD(test_a_worker_that_is_behind_defers_looks),
        IN_WORLD(test_a_worker_that_is_far_behind_is_told_nothing),
        IN_WORLD(test_late_ticks_are_planned_and_counted),
        IN_WORLD(test_threads_come_and_go),
        IN_WORLD(test_a_thread_with_another_name_is_told),
        IN_WORLD(test_the_end_of_a_process),
        IN_WORLD(test_an_id_that_is_used_again),
        IN_WORLD(test_the_end_of_the_recording),
        IN_WORLD(test_one_that_moved_is_no_idle_one),
        IN_WORLD(test_the_duration),
        IN_WORLD(test_descendants_are_taken_in),
        IN_WORLD(test_a_copy),
        IN_WORLD(test_moments),
        IN_WORLD(test_a_dump_takes_each_thread_once),
        IN_WORLD(test_only_chosen_threads_are_looked_at),
    };
    return cmocka_run_group_tests_name("ticks", tests, NULL, NULL);
}
