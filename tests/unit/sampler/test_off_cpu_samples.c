/* A thread's ticks off its CPU, by the kernel's record of switches: each is reported once, for the
 * state of the thread at that time. */
#include "fake/fake.h"
#include "base/random.h"
#include "sampler/off_cpu_samples.h"

#include <errno.h>
#include <poll.h>

#define PID 100
#define TID 101
#define LATE_NS 20000u /* how long after a tick a look comes */

static uint64_t tick_ns(uint64_t tick)
{
    return ticks_due_ns(&fake->sampler.clock.ticks, tick - 1);
}

/* Takes ticks up to this one, with the last look this long after it. */
static void take_tick(uint64_t tick, uint64_t late_ns)
{
    assert_true(tick_ns(tick) + late_ns >= fake->now_ns);
    fake->now_ns = tick_ns(tick) + late_ns;
    fake_ticks(1);
}

static void take_ticks(uint64_t from, uint64_t to)
{
    for (uint64_t tick = from; tick <= to; tick++)
        take_tick(tick, LATE_NS);
}

/* Adds a thread that has run since before the beginning. The source of sleeping threads, if it is
 * used, finds it running. */
static struct fake_thread *add_runner(struct fake_process *process, pid_t tid)
{
    struct fake_thread *thread = fake_thread(process, tid, FAKE_RUNS);
    fake_departs(thread, THREAD_SLEEPING, FAKE_START_NS - 300, FAKE_START_NS - 200,
                 FAKE_START_NS - 100);
    return thread;
}

/* Begins with two ticks at which the thread ran. */
static struct fake_thread *begin_with_runner(void)
{
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    struct fake_thread *thread = add_runner(process, TID);
    fake->options.capture = CAPTURE_RECORD;
    fake->options.max_pause_percent = 100;
    fake->record_error = 0;
    fake_begin();
    take_ticks(1, 2);
    fake_forget_told();
    return thread;
}

static bool tells_of_time_off(enum evidence evidence)
{
    return evidence == EVIDENCE_ASLEEP || evidence == EVIDENCE_WAITING ||
           evidence == EVIDENCE_WOKEN || evidence == EVIDENCE_UNMOVED;
}

/* The next observation of the thread off its CPU. */
static const struct observation *next_off(pid_t tid)
{
    const struct observation *told;
    while ((told = fake_next_of(tid)) && !tells_of_time_off(told->evidence)) {
    }
    return told;
}

static bool has_snapshot(void)
{
    return fake->told[fake->told_next - 1].has_snapshot;
}

/* Checks that no snapshot is lost: all that the sampler does not hold can be taken. */
static void expect_all_snapshots(void)
{
    fake_hoard(0);
    assert_int_equal(fake->hoards[0].count + (fake->sampler.spare != NULL), SNAPSHOTS_MAX);
    fake_hoard_no_more();
}

/* ---- Ticks ---- */

static const struct ticks ticking = {.start_ns = FAKE_START_NS, .period_ns = 1000000, .seed = 5};

/* A time in the middle between two ticks. */
static uint64_t after(uint64_t tick)
{
    uint64_t before_ns = ticks_due_ns(&ticking, tick - 1);
    return before_ns + (ticks_due_ns(&ticking, tick) - before_ns) / 2;
}

static void expect_ticks(uint64_t known_tick, uint64_t tick, uint64_t departed_ns,
                         uint64_t woken_ns, uint64_t asleep, uint64_t runnable)
{
    const struct observation observation = {.record.departed_ns = departed_ns,
                                            .record.woken_ns = woken_ns};
    const struct off_cpu_ticks ticks =
        off_cpu_ticks_since(&ticking, known_tick, tick, &observation);
    assert_int_equal(ticks.asleep, asleep);
    assert_int_equal(ticks.runnable, runnable);
}

static void test_ticks_of_a_sleeper(void **state)
{
    (void)state;
    expect_ticks(3, 6, after(3), 0, 3, 0);
    expect_ticks(2, 6, after(3), 0, 3, 0); /* it ran at tick 3 */
    expect_ticks(4, 6, after(2), 0, 2, 0); /* ticks up to 4 are already reported */
    expect_ticks(0, 6, FAKE_START_NS - 1, 0, 6, 0);
    expect_ticks(5, 6, after(6), 0, 0, 0); /* it left after the tick */
}

static void test_ticks_of_one_that_was_woken(void **state)
{
    (void)state;
    expect_ticks(3, 6, after(3), after(4), 1, 2);
    expect_ticks(3, 6, after(3), after(3) + 1, 0, 3);
    expect_ticks(2, 6, after(3), after(4), 1, 2);
    expect_ticks(4, 6, after(2), after(5), 1, 1);
    expect_ticks(4, 6, after(2), after(3), 0, 2); /* it was known to be runnable */
    expect_ticks(4, 6, after(2), after(6), 2, 0);
    expect_ticks(4, 6, after(2), after(9), 2, 0);
}

static void test_ticks_of_one_that_was_preempted(void **state)
{
    (void)state;
    expect_ticks(3, 6, after(3), after(3), 0, 3);
    expect_ticks(4, 6, after(2), after(2), 0, 2);
}

static void test_no_ticks_that_were_told_already(void **state)
{
    (void)state;
    expect_ticks(6, 6, after(3), 0, 0, 0);
    expect_ticks(6, 6, after(3), after(4), 0, 0);
    expect_ticks(8, 6, after(3), 0, 0, 0);
    expect_ticks(8, 6, after(3), after(5), 0, 0);
    expect_ticks(8, 6, after(3), after(7), 0, 0);
}

/* In the record, a thread that leaves its CPU at the time of a tick is off it at that tick. */
static void test_ticks_at_the_very_moment(void **state)
{
    (void)state;
    uint64_t at_ns = ticks_due_ns(&ticking, 4); /* tick 5 */
    expect_ticks(4, 5, at_ns, 0, 1, 0);
    expect_ticks(4, 5, at_ns, at_ns, 0, 1);
    expect_ticks(4, 5, after(4), at_ns, 0, 1);
    expect_ticks(3, 5, at_ns + 1, 0, 0, 0);
}

/* ---- Ended before the look ---- */

static void test_a_sleep_that_is_over_is_told_for_its_tick(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    unsigned looks = thread->looks, stops = thread->stops;
    fake_departs(thread, THREAD_UNINTERRUPTIBLE, tick_ns(3) - 1000, tick_ns(3) + 100,
                 tick_ns(3) + 200);
    take_tick(3, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->state, THREAD_UNINTERRUPTIBLE);
    assert_int_equal(told->tick, 3);
    assert_int_equal(told->ticks, 1);
    assert_int_equal(told->wait.syscall_number, thread->syscall_number);
    assert_int_equal(told->record.departed_ns, tick_ns(3) - 1000);
    assert_int_equal(told->record.returned_ns, tick_ns(3) + 200);
    assert_true(told->asleep.is_over);
    assert_true(told->now.has_activity);
    const struct fake_told *copy = &fake->told[fake->told_next - 1];
    assert_true(copy->has_snapshot);
    assert_int_equal(copy->pc, thread->pc);
    assert_true(copy->stack_bytes > 0);
    assert_int_equal(copy->stack_byte, FAKE_STACK_BYTE);
    assert_null(next_off(TID));
    assert_int_equal(fake->sampler.counts.recorded_samples, 1);
    assert_int_equal(thread->looks, looks); /* that tick is settled */
    assert_int_equal(thread->stops, stops);
    expect_all_snapshots();
}

static bool is_told_to_wait(pid_t tid)
{
    const struct observation *told;
    while ((told = next_off(tid)) && told->evidence != EVIDENCE_WAITING) {
    }
    return told != NULL;
}

/* The process has exited, which is not noticed yet, and another one has its id. */
static void test_a_departure_of_a_process_with_the_same_id(void **state)
{
    (void)state;
    begin_with_runner();
    struct fake_thread *leader = fake_find(PID);
    fake_departs(leader, THREAD_RUNNABLE, tick_ns(3) - 1000, 0, tick_ns(3) + 200)->start_ns =
        UINT64_MAX;
    take_tick(3, LATE_NS);
    assert_false(is_told_to_wait(PID));
    fake_departs(leader, THREAD_RUNNABLE, tick_ns(4) - 1000, 0, tick_ns(4) + 200);
    take_tick(4, LATE_NS);
    assert_true(is_told_to_wait(PID));
}

/* It is not known whether the sleep belongs to the previous program or to the one executed since.
 */
static void test_a_sleep_that_is_over_goes_with_its_program(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    uint32_t programs = fake->sampler.programs_begun;
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, tick_ns(3) + 100, tick_ns(3) + 200);
    thread->process->programs++;
    take_tick(3, LATE_NS);
    assert_null(next_off(TID));
    assert_int_equal(fake->sampler.counts.recorded_samples, 0);
    assert_int_equal(fake->sampler.counts.recorded_lost, 1);
    assert_int_equal(fake->sampler.programs_begun, programs + 1); /* noticed immediately */
}

static void test_a_sleep_over_several_ticks(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, tick_ns(4) + 100, tick_ns(4) + 200);
    take_tick(4, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->tick, 4);
    assert_int_equal(told->ticks, 2);
    assert_null(next_off(TID));
}

/* Both are reported, each for its own tick. */
static void test_a_sleep_and_the_wait_after_it(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, tick_ns(4) - 100, tick_ns(4) + 200);
    take_tick(4, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->tick, 3);
    assert_int_equal(told->ticks, 1);
    assert_true(has_snapshot());
    told = next_off(TID);
    assert_int_equal(told->evidence, EVIDENCE_WOKEN);
    assert_int_equal(told->state, THREAD_RUNNABLE);
    assert_int_equal(told->tick, 4);
    assert_int_equal(told->ticks, 1);
    assert_false(has_snapshot());
    assert_null(next_off(TID));
    assert_int_equal(fake->sampler.counts.recorded_samples, 2);
    expect_all_snapshots();
}

static void test_two_departures_between_looks(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, tick_ns(3) + 100, tick_ns(3) + 200);
    thread->pc++;
    fake_departs(thread, THREAD_SLEEPING, tick_ns(4) - 1000, tick_ns(4) + 100, tick_ns(4) + 200);
    take_tick(4, LATE_NS);
    for (uint64_t tick = 3; tick <= 4; tick++) {
        const struct observation *told = next_off(TID);
        assert_non_null(told);
        assert_int_equal(told->tick, tick);
        assert_int_equal(told->ticks, 1);
        assert_int_equal(fake->told[fake->told_next - 1].pc, thread->pc - (tick == 3));
    }
    assert_null(next_off(TID));
}

static void test_a_wait_for_a_cpu_that_is_over(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_RUNNABLE, tick_ns(3) - 1000, 0, tick_ns(3) + 200);
    take_tick(3, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_int_equal(told->evidence, EVIDENCE_WAITING);
    assert_int_equal(told->state, THREAD_RUNNABLE);
    assert_int_equal(told->tick, 3);
    assert_int_equal(told->ticks, 1);
    assert_true(has_snapshot());
    assert_null(next_off(TID));
}

/* ---- Which thread had the CPU ---- */

static const struct cpu_user hog = {.is_known = true, .process_id = 55, .tid = 56, .name = "hog"};

static void test_which_thread_had_the_cpu(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    assert_false(fake->are_cpus_watched);
    fake->cpu_user = hog;
    fake_departs(thread, THREAD_RUNNABLE, tick_ns(3) - 1000, 0, tick_ns(3) + 200)->runnable_cpu = 7;
    take_tick(3, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_int_equal(fake->asked_cpu, 7);
    assert_int_equal(fake->asked_tick_ns, tick_ns(3));
    assert_true(told->record.cpu_user.is_known && !told->record.cpu_user.is_sampled);
    assert_int_equal(told->record.cpu_user.tid, 56);
    /* It still waits at the look. The other thread is also sampled. */
    fake->cpu_user.process_id = fake->cpu_user.tid = PID;
    fake_departs(thread, THREAD_SLEEPING, tick_ns(4) - 1000, tick_ns(4) - 500, 0)->runnable_cpu = 8;
    take_tick(4, LATE_NS);
    told = next_off(TID);
    assert_int_equal(told->state, THREAD_RUNNABLE);
    assert_int_equal(fake->asked_cpu, 8);
    assert_int_equal(fake->asked_tick_ns, tick_ns(4));
    assert_true(told->record.cpu_user.is_sampled);
    assert_int_equal(told->record.cpu_user.process, told->process);
    assert_int_not_equal(told->record.cpu_user.thread, told->thread);
}

/* One of several ticks represents all. */
static void test_which_thread_had_the_cpu_at_several_ticks(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    bool is_one = false;
    fake->cpu_user = hog;
    fake_departs(thread, THREAD_RUNNABLE, tick_ns(3) - 1000, 0, tick_ns(6) + 200);
    take_tick(6, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_int_equal(told->ticks, 4);
    for (uint64_t tick = 3; tick <= 6; tick++)
        is_one |= fake->asked_tick_ns == tick_ns(tick);
    assert_true(is_one && told->record.cpu_user.is_known);
}

/* After a move, the thread no longer waits for the user of its previous CPU. */
static void test_which_thread_had_the_cpu_before_a_move(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake->cpu_user = hog;
    fake_departs(thread, THREAD_RUNNABLE, tick_ns(3) - 1000, 0, tick_ns(3) + 200)->moved_ns =
        tick_ns(3) + 1;
    take_tick(3, LATE_NS);
    assert_true(next_off(TID)->record.cpu_user.is_known);
    fake_departs(thread, THREAD_RUNNABLE, tick_ns(4) - 1000, 0, tick_ns(4) + 200)->moved_ns =
        tick_ns(4);
    take_tick(4, LATE_NS);
    assert_false(next_off(TID)->record.cpu_user.is_known);
    /* It still waits at the look. */
    fake_departs(thread, THREAD_SLEEPING, tick_ns(5) - 1000, tick_ns(5) - 500, 0)->moved_ns =
        tick_ns(5) - 100;
    take_tick(5, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_int_equal(told->state, THREAD_RUNNABLE);
    assert_false(told->record.cpu_user.is_known);
}

static void test_cpus_are_watched_while_threads_wait_for_them(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, tick_ns(3) + 100, tick_ns(3) + 200);
    take_tick(3, LATE_NS);
    assert_false(fake->are_cpus_watched); /* it slept */
    fake_departs(thread, THREAD_RUNNABLE, tick_ns(4) - 1000, 0, tick_ns(4) + 200);
    take_tick(4, LATE_NS);
    assert_true(fake->are_cpus_watched);
    while (fake->now_ns < tick_ns(4) + 1100000000u)
        fake_ticks(1);
    assert_false(fake->are_cpus_watched);
}

/* ---- Still off its CPU at the look ---- */

static void test_a_sleeper_is_looked_at(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    unsigned looks = thread->looks;
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, 0, 0);
    take_ticks(3, 4);
    const struct observation *told = next_off(TID);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->state, THREAD_SLEEPING);
    assert_int_equal(told->ticks, 1);
    assert_int_equal(told->record.departed_ns, tick_ns(3) - 1000);
    assert_int_equal(told->record.woken_ns, 0);
    assert_false(told->asleep.is_over);
    assert_true(has_snapshot());
    assert_int_equal(fake_count(TID, EVIDENCE_ASLEEP), 0); /* once */
    assert_int_equal(thread->acknowledged_tick, 4);
    assert_int_equal(thread->looks, looks); /* only by the record */
    assert_int_equal(fake->sampler.counts.recorded_samples, 0);
}

static void test_one_that_waits_for_a_cpu_is_looked_at(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_RUNNABLE, tick_ns(3) - 1000, 0, 0);
    take_ticks(3, 4);
    for (uint64_t tick = 3; tick <= 4; tick++) {
        const struct observation *told = next_off(TID);
        assert_non_null(told);
        assert_int_equal(told->evidence, EVIDENCE_WAITING);
        assert_int_equal(told->state, THREAD_RUNNABLE);
        assert_int_equal(told->tick, tick);
        assert_int_equal(told->ticks, 1);
        assert_true(has_snapshot());
    }
}

/* It woke and exited between the record's answer and the look, so nothing could be copied. */
static void test_one_that_is_gone_at_the_look(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, 0, 0);
    thread->doing = FAKE_GONE;
    take_tick(3, LATE_NS);
    assert_null(next_off(TID));
    fake->told_next = 0;
    assert_int_equal(fake_count(TID, EVIDENCE_GONE), 1);
    expect_all_snapshots();
}

/* According to the record, it was running at the tick. */
static void test_running_at_the_tick_and_asleep_at_the_look(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) + 1000, 0, 0);
    take_tick(3, LATE_NS);
    assert_null(next_off(TID));
    take_tick(4, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->tick, 4);
    assert_int_equal(told->ticks, 1);
}

static void test_asleep_at_the_tick_and_woken_at_the_look(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, tick_ns(3) + 1000, 0);
    take_tick(3, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->state, THREAD_SLEEPING);
    assert_int_equal(told->ticks, 1);
    assert_null(next_off(TID));
    take_tick(4, LATE_NS);
    told = next_off(TID);
    assert_int_equal(told->evidence, EVIDENCE_WOKEN);
    assert_int_equal(told->ticks, 1);
    assert_int_equal(told->before.asleep_ticks, 0);
}

static void test_moved_during_the_copy(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, 0, 0);
    thread->slips = 1;
    take_tick(3, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_true(told->asleep.is_over);
    assert_int_equal(told->tick, 3);
    assert_int_equal(told->ticks, 1);
    assert_null(next_off(TID));
    assert_int_equal(fake->sampler.counts.recorded_samples, 1);
    expect_all_snapshots();
}

/* At the tick it waited for a CPU, so it is among the threads that were awake then. */
static void test_awake_if_it_was_runnable(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, tick_ns(3) - 500, 0);
    thread->slips = 1;
    take_tick(3, LATE_NS);
    const struct fake_told *told = fake_next(MESSAGE_TICK);
    assert_non_null(told);
    assert_int_equal(told->message.tick.thread_count, 1);
    assert_int_equal(told->awake[0].tid, TID);
}

static void test_awake_if_it_waits_for_a_cpu(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_RUNNABLE, tick_ns(3) - 1000, 0, 0);
    take_tick(3, LATE_NS);
    const struct fake_told *told = fake_next(MESSAGE_TICK);
    assert_non_null(told);
    assert_int_equal(told->message.tick.thread_count, 1);
    assert_int_equal(told->awake[0].tid, TID);
}

/* As without a record: earlier ticks are not known to be the thread's. */
static void test_the_first_look_stands_for_its_tick(void **state)
{
    (void)state;
    struct fake_thread *thread = fake_thread(fake_process(PID), PID, FAKE_RUNS);
    fake_departs(thread, THREAD_SLEEPING, FAKE_START_NS - 100, 0, 0);
    fake->options.capture = CAPTURE_RECORD;
    fake->record_error = 0;
    fake_begin();
    take_tick(2, LATE_NS);
    const struct observation *told = next_off(PID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->ticks, 1);
}

/* Every look found it asleep, but the record has seen it move. */
static void test_one_that_moved_between_looks_has_moved(void **state)
{
    (void)state;
    struct fake_thread *thread = fake_thread(fake_process(PID), PID, FAKE_RUNS);
    struct departure *departure = fake_departs(thread, THREAD_SLEEPING, FAKE_START_NS - 100, 0, 0);
    fake->options.capture = CAPTURE_RECORD;
    fake->record_error = 0;
    fake_begin();
    take_ticks(1, 2);
    departure->runnable_ns = departure->in_ns = tick_ns(3) + 100;
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) + 200, 0, 0);
    take_ticks(3, 4);
    fake_end();
    const struct observation *told;
    while ((told = fake_next_of(PID)) && told->evidence != EVIDENCE_GONE) {
    }
    assert_non_null(told);
    assert_false(told->end.never_moved);
}

/* ---- Seen asleep before ---- */

/* Its sleep was copied at tick 3, and it slept on at tick 4. */
static struct departure *begin_with_sleeper(void)
{
    struct fake_thread *thread = begin_with_runner();
    struct departure *departure = fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, 0, 0);
    take_ticks(3, 4);
    assert_int_equal(fake_count(TID, EVIDENCE_ASLEEP), 1);
    assert_int_equal(fake_count(TID, EVIDENCE_UNMOVED), 0);
    fake_forget_told();
    return departure;
}

static void test_a_sleep_that_goes_on_is_not_copied_again(void **state)
{
    (void)state;
    struct departure *departure = begin_with_sleeper();
    departure->runnable_ns = tick_ns(5) + 100;
    departure->in_ns = tick_ns(5) + 200;
    take_tick(5, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_UNMOVED);
    assert_int_equal(told->state, THREAD_SLEEPING);
    assert_int_equal(told->ticks, 0);
    assert_int_equal(told->before.asleep_ticks, 2);
    assert_int_equal(told->before.asleep.at_ns, tick_ns(5) + 100);
    assert_int_equal(told->now.at_ns, tick_ns(5) + 100); /* it may have run since */
    assert_false(has_snapshot());
    assert_null(next_off(TID));
    expect_all_snapshots();
}

static void test_ticks_after_it_was_woken_are_runnable(void **state)
{
    (void)state;
    struct departure *departure = begin_with_sleeper();
    departure->runnable_ns = tick_ns(6) - 100;
    departure->in_ns = tick_ns(6) + 200;
    take_tick(6, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_WOKEN);
    assert_int_equal(told->state, THREAD_RUNNABLE);
    assert_int_equal(told->tick, 6);
    assert_int_equal(told->ticks, 1);
    assert_int_equal(told->before.asleep_ticks, 2); /* 4 and 5 */
    assert_int_equal(told->before.asleep.at_ns, tick_ns(6) - 100);
    assert_false(has_snapshot());
    assert_null(next_off(TID));
    expect_all_snapshots();
}

/* The same, but it still waits for a CPU when it is looked at. */
static void test_woken_and_still_there(void **state)
{
    (void)state;
    struct departure *departure = begin_with_sleeper();
    departure->runnable_ns = tick_ns(6) - 100;
    take_tick(6, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_WOKEN);
    assert_int_equal(told->ticks, 1);
    assert_int_equal(told->before.asleep_ticks, 2);
    assert_int_equal(told->before.asleep.at_ns, tick_ns(6) - 100);
    departure->in_ns = tick_ns(7) + 100; /* and at the next tick */
    take_tick(7, LATE_NS);
    told = next_off(TID);
    assert_non_null(told);
    assert_int_equal(told->tick, 7);
    assert_int_equal(told->ticks, 1);
    assert_int_equal(told->state, THREAD_RUNNABLE);
    assert_int_equal(told->before.asleep_ticks, 0);
    assert_null(next_off(TID));
}

static void test_the_sleep_after_it_is_another(void **state)
{
    (void)state;
    struct departure *departure = begin_with_sleeper();
    departure->runnable_ns = tick_ns(4) + LATE_NS + 100;
    departure->in_ns = tick_ns(4) + LATE_NS + 200;
    fake_departs(fake_find(TID), THREAD_SLEEPING, tick_ns(4) + LATE_NS + 300, 0, 0);
    take_tick(5, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->ticks, 1);
    assert_int_equal(told->before.asleep_ticks, 1);
    assert_true(has_snapshot());
}

/* A thread that sleeps for long is not looked at in each tick, until it has moved. */
static void test_looks_after_a_long_sleep(void **state)
{
    (void)state;
    struct departure *departure = begin_with_sleeper();
    struct fake_thread *thread = fake_find(TID);
    take_ticks(5, 203);
    assert_true(thread->acknowledged_tick < 203); /* its turn is later */
    fake_forget_told();
    departure->runnable_ns = tick_ns(204) + 100;
    departure->in_ns = tick_ns(204) + 200;
    take_tick(204, LATE_NS);
    const struct observation *told = next_off(TID);
    assert_non_null(told);
    assert_int_equal(told->tick, 204);
    fake_departs(thread, THREAD_SLEEPING, tick_ns(205) - 1000, 0, 0);
    take_tick(205, LATE_NS);
    told = next_off(TID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->tick, 205);
    assert_int_equal(told->ticks, 1);
}

/* How many ticks were reported as asleep; checks that each report has the thread's account. */
static uint64_t ticks_told_asleep(pid_t tid)
{
    const struct observation *told;
    uint64_t ticks = 0;
    while ((told = next_off(tid))) {
        const struct reading *until = told->before.asleep.at_ns ? &told->before.asleep : &told->now;
        assert_true(reading_has_times(until));
        ticks += told->ticks + told->before.asleep_ticks;
    }
    return ticks;
}

/* It has slept since before the record, so it is looked at in few ticks, and only its waking is
 * recorded. */
static void test_the_end_of_a_wait_older_than_the_record(void **state)
{
    (void)state;
    fake_thread(fake_process(PID), PID, FAKE_SLEEPS);
    fake->options.capture = CAPTURE_RECORD;
    fake->record_error = 0;
    fake_begin();
    struct fake_thread *thread = fake_find(PID);
    uint64_t tick = 203;
    take_ticks(1, tick);
    for (unsigned looks = thread->looks; thread->looks == looks;)
        take_tick(++tick, LATE_NS);
    unsigned looks = thread->looks;
    thread->old_wait_ends_ns = tick_ns(tick + 2) + 100;
    fake_departs(thread, THREAD_SLEEPING, tick_ns(tick + 3) - 1000, 0, 0);
    take_ticks(tick + 1, tick + 2);
    assert_int_equal(thread->looks, looks); /* its turn is later */
    assert_int_equal(ticks_told_asleep(PID), tick + 2);
    take_tick(tick + 3, LATE_NS);
    const struct observation *told = next_off(PID);
    assert_non_null(told);
    assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(told->tick, tick + 3);
    assert_int_equal(told->ticks + told->before.asleep_ticks, 1);
}

/* ---- Dropped ---- */

/* It moved just when its tick was acknowledged. */
static void test_a_message_for_a_tick_that_was_looked_at(void **state)
{
    (void)state;
    struct departure *departure = begin_with_sleeper();
    fake_find(TID)->acknowledged_tick = 3;
    departure->runnable_ns = departure->in_ns = tick_ns(4) + LATE_NS + 100;
    take_tick(5, LATE_NS);
    assert_null(next_off(TID));
    assert_int_equal(fake->sampler.counts.recorded_samples, 0);
    expect_all_snapshots();
}

/* It ran at a later tick, and was looked at then. */
static void test_a_message_from_before_the_last_look(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, tick_ns(3) + 100, tick_ns(3) + 200);
    fake->holds_messages = true;
    take_tick(4, LATE_NS);
    fake->holds_messages = false;
    take_tick(5, LATE_NS);
    assert_null(next_off(TID));
    assert_int_equal(fake->sampler.counts.recorded_samples, 0);
    expect_all_snapshots();
}

static void test_a_thread_that_is_not_known_yet(void **state)
{
    (void)state;
    begin_with_runner();
    struct fake_thread *thread = add_runner(fake_find_process(PID), TID + 1);
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, tick_ns(3) + 100, tick_ns(3) + 200);
    take_tick(3, LATE_NS);
    assert_null(next_off(TID + 1));
    assert_int_equal(fake->sampler.counts.recorded_samples, 0);
    fake_forget_told();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(4) - 1000, tick_ns(4) + 100, tick_ns(4) + 200);
    take_tick(4, LATE_NS);
    assert_int_equal(fake_count(TID + 1, EVIDENCE_ASLEEP), 1);
    expect_all_snapshots();
}

static void test_a_thread_that_is_not_wanted(void **state)
{
    (void)state;
    assert_int_equal(thread_choice_add_tid(&fake->options.choice, PID), 0);
    struct fake_thread *thread = begin_with_runner();
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, tick_ns(3) + 100, tick_ns(3) + 200);
    take_tick(3, LATE_NS);
    assert_null(fake_next_of(TID));
    assert_int_equal(fake->sampler.counts.recorded_samples, 0);
    expect_all_snapshots();
    fake_end();
    thread_choice_free(&fake->options.choice);
}

static void test_lost_messages_are_counted(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake->messages_lost = 3;
    fake->wakes_lost = 5;
    fake->hidden_returns = 7;
    fake->without_slot = 9;
    fake->without_memory = 11;
    fake_departs(thread, THREAD_SLEEPING, tick_ns(3) - 1000, tick_ns(4) + 100, tick_ns(4) + 200);
    fake_hoard(0);
    take_tick(4, LATE_NS);
    assert_int_equal(fake->sampler.counts.recorded_lost,
                     4); /* and one, of two ticks, without a snapshot */
    assert_int_equal(fake->sampler.counts.wakes_lost, 5);
    assert_int_equal(fake->sampler.counts.hidden_returns, 7);
    assert_int_equal(fake->sampler.counts.switches_unrecorded, 20);
}

/* ---- All together ---- */

#define SUM_THREADS 6
#define SUM_TICKS 100
#define SUM_SEED 77

struct sums {
    uint64_t running, asleep, runnable;
};

static uint32_t below(uint32_t limit)
{
    static uint64_t count;
    return random_below(limit, SUM_SEED, count++);
}

static uint64_t some_time(void)
{
    return below(4) ? 1000 + below(FAKE_PERIOD_NS / 4) : below(4 * FAKE_PERIOD_NS);
}

/* Scripts departures of all kinds, one after the other. */
static void script(struct fake_thread *thread, uint64_t from_ns, uint64_t to_ns)
{
    for (uint64_t at_ns = from_ns; thread->departure_count < FAKE_DEPARTURES_MAX;) {
        uint64_t out_ns = at_ns + some_time();
        bool sleeps = below(3);
        uint64_t woken_ns = sleeps ? out_ns + some_time() : out_ns;
        at_ns = woken_ns + (below(2) ? 500 : some_time());
        if (at_ns > to_ns)
            return;
        thread->pc++;
        fake_departs(thread, sleeps ? THREAD_SLEEPING : THREAD_RUNNABLE, out_ns, woken_ns, at_ns);
    }
}

static enum thread_state state_at(const struct fake_thread *thread, uint64_t at_ns)
{
    for (size_t i = 0; i < thread->departure_count; i++) {
        const struct departure *departure = &thread->departures[i];
        if (departure->out_ns <= at_ns && departure->in_ns > at_ns)
            return departure->runnable_ns <= at_ns ? THREAD_RUNNABLE : THREAD_SLEEPING;
    }
    return THREAD_RUNNING;
}

static struct sums sums_told(pid_t tid)
{
    struct sums sums = {0};
    const struct observation *told;
    fake->told_next = 0;
    while ((told = fake_next_of(tid))) {
        sums.asleep += told->before.asleep_ticks;
        if (told->evidence == EVIDENCE_SAMPLED || told->evidence == EVIDENCE_STOPPED)
            sums.running += told->ticks;
        else if (told->evidence == EVIDENCE_ASLEEP)
            sums.asleep += told->ticks;
        else if (told->evidence == EVIDENCE_WAITING || told->evidence == EVIDENCE_WOKEN)
            sums.runnable += told->ticks;
        else
            assert_int_equal(told->evidence, EVIDENCE_UNMOVED);
    }
    return sums;
}

/* The kernel samples the threads that run at a tick. */
static void play_tick(uint64_t tick, struct sums *sums)
{
    for (int i = 0; i < SUM_THREADS; i++) {
        struct fake_thread *thread = fake_find(TID + i);
        enum thread_state thread_state = state_at(thread, tick_ns(tick));
        sums[i].asleep += thread_state == THREAD_SLEEPING;
        sums[i].runnable += thread_state == THREAD_RUNNABLE;
        sums[i].running += thread_state == THREAD_RUNNING;
        if (thread_state != THREAD_RUNNING)
            continue;
        thread->activity.running_ns += FAKE_PERIOD_NS;
        fake_sample(PID, thread->tid, tick_ns(tick));
    }
}

static void test_a_worker_that_is_behind_is_told_of_no_end_of_a_sleep(void **state)
{
    (void)state;
    struct departure *departure = begin_with_sleeper();
    fake_fall_behind();
    fake_hoard(0);
    uint64_t sent = channel_sent(fake->channel), lost = fake->sampler.counts.recorded_lost;
    departure->runnable_ns = tick_ns(5) + 100;
    departure->in_ns = tick_ns(5) + 200;
    take_tick(5, LATE_NS);
    assert_int_equal(channel_sent(fake->channel), sent);
    assert_true(fake->sampler.counts.recorded_lost > lost);
}

static void test_a_worker_that_is_behind_is_told_of_no_waker(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    fake_fall_behind();
    uint64_t sent = channel_sent(fake->channel);
    thread->old_wait_ends_ns = tick_ns(3) + 100;
    take_tick(3, LATE_NS);
    assert_int_equal(thread->old_wait_ends_ns, 0);
    assert_int_equal(channel_sent(fake->channel), sent);
}

/* Each tick of each thread is reported once, however late looks are: often two ticks at a time. */
static void test_ticks_add_up(void **state)
{
    (void)state;
    struct sums sums[SUM_THREADS] = {0}, all = {0};
    struct fake_process *process = fake_process(PID);
    for (int i = 0; i < SUM_THREADS; i++)
        add_runner(process, TID + i);
    fake->options.capture = CAPTURE_RECORD;
    fake->record_error = 0;
    fake_begin();
    for (int i = 0; i < SUM_THREADS; i++)
        script(fake_find(TID + i), tick_ns(2) + LATE_NS, tick_ns(SUM_TICKS - 1));
    for (uint64_t tick = 1; tick <= SUM_TICKS;) {
        uint64_t late_ns = tick > 2 ? below(FAKE_PERIOD_NS * 2 / 3) : 0;
        uint64_t look_ns = tick_ns(tick) + late_ns, due = tick;
        while (due < SUM_TICKS && tick_ns(due + 1) <= look_ns)
            due++;
        if (due == SUM_TICKS)
            look_ns = tick_ns(due);
        for (; tick <= due; tick++)
            play_tick(tick, sums);
        if (look_ns > fake->now_ns)
            fake->now_ns = look_ns;
        fake_ticks(1);
    }
    for (int i = 0; i < SUM_THREADS; i++) {
        const struct sums told = sums_told(TID + i);
        assert_int_equal(fake_find(TID + i)->stops, 0);
        assert_int_equal(told.asleep, sums[i].asleep);
        assert_int_equal(told.runnable, sums[i].runnable);
        assert_int_equal(told.running, sums[i].running);
        all.asleep += told.asleep;
        all.runnable += told.runnable;
        all.running += told.running;
    }
    assert_int_equal(all.asleep + all.runnable + all.running, SUM_THREADS * SUM_TICKS);
    assert_true(all.asleep > 50 && all.runnable > 50 && all.running > 50);
    assert_true(fake->sampler.counts.recorded_samples > 20);
    assert_int_equal(fake->sampler.counts.recorded_lost, 0);
    expect_all_snapshots();
}

/* ---- Permission ---- */

static void execute(const char *syscall_file)
{
    struct fake_process *process = fake_find_process(PID);
    process->programs++;
    process->exec_ns = fake->now_ns;
    process->syscall_file = syscall_file;
    fake_ticks(2);
}

/* A program that we may not trace may have been executed (set-user-ID). */
static void test_only_what_may_be_traced_is_recorded(void **state)
{
    (void)state;
    begin_with_runner();
    const struct fake_process *process = fake_find_process(PID);
    assert_true(process->is_recorded);
    execute(NULL);
    assert_false(process->is_recorded);
    execute("/dev/zero");
    assert_true(process->is_recorded);
    execute("/proc/self/mem"); /* can be opened, but not read: nothing is at 0 */
    assert_false(process->is_recorded);
}

static void test_not_recorded_from_the_beginning(void **state)
{
    (void)state;
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    process->syscall_file = NULL;
    fake->options.capture = CAPTURE_RECORD;
    fake->record_error = 0;
    fake_begin();
    assert_int_equal(fake->records_opened, 1);
    assert_false(process->is_recorded);
}

static void expect_no_record(void)
{
    fake->record_error = 0;
    fake_thread(fake_process(PID), PID, FAKE_SLEEPS);
    fake_begin();
    fake_end();
    assert_int_equal(fake->records_opened, 0);
    assert_int_equal(fake->sampler.counts.record_refusal, 0);
    assert_false(fake->sampler.counts.has_switch_record);
}

static void test_no_record_if_threads_are_stopped(void **state)
{
    (void)state;
    fake->options.capture = CAPTURE_PTRACE;
    expect_no_record();
}

static void test_no_record_for_a_dump(void **state)
{
    (void)state;
    fake->options.capture = CAPTURE_AUTO;
    fake->options.is_dump = true;
    expect_no_record();
}

static void test_no_record_without_time(void **state)
{
    (void)state;
    fake->options.capture = CAPTURE_AUTO;
    fake->options.has_no_time = true;
    expect_no_record();
}

static void test_a_record_that_is_refused(void **state)
{
    (void)state;
    fake_thread(fake_process(PID), PID, FAKE_SLEEPS);
    fake->options.capture = CAPTURE_AUTO;
    fake->record_error = -ENOTSUP;
    fake_begin();
    fake_ticks(3);
    fake_end();
    assert_int_equal(fake->records_opened, 1);
    assert_int_equal(fake->sampler.counts.record_refusal, ENOTSUP);
    assert_false(fake->sampler.counts.has_switch_record);
    assert_int_equal(fake->recorded_ticks.period_ns, 0);
    assert_int_equal(fake_count(PID, EVIDENCE_ASLEEP), 1);
}

static void keep_log(const char *log, void *context)
{
    char *kept = context;
    assert_string_equal(kept, "");
    strcpy(kept, log);
}

static void check_log(enum capture capture, int error, const char *expected)
{
    char log[64] = "";
    fake->options.take_bpf_log = keep_log;
    fake->options.bpf_log_context = log;
    fake->options.capture = capture;
    fake->record_error = error;
    fake_thread(fake_process(PID), PID, FAKE_SLEEPS);
    fake_begin();
    fake_end();
    assert_int_equal(fake->records_opened, 1);
    assert_string_equal(log, expected);
}

static void test_why_a_record_is_refused(void **state)
{
    (void)state;
    check_log(CAPTURE_AUTO, -EACCES, "the verifier speaks\n");
}

static void test_no_log_if_the_record_is_permitted(void **state)
{
    (void)state;
    check_log(CAPTURE_RECORD, 0, "");
}

static void await_record(const struct fake_process *process)
{
    fake->holds_record = false;
    for (unsigned i = 0; i < 10000 && !process->is_recorded; i++) {
        poll(NULL, 0, 1); /* the thread that opens it is a real one, and nanosleep(2) is not */
        if (fake->records_opened)
            fake_ticks(1);
    }
    assert_true(process->is_recorded);
}

/* Ticks come while the record is being opened. */
static void test_a_record_is_opened_meanwhile(void **state)
{
    (void)state;
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    fake->options.capture = CAPTURE_AUTO;
    fake->record_error = 0;
    fake_begin();
    fake_ticks(1);
    await_record(process);
    fake_end();
    assert_true(fake->sampler.counts.has_switch_record);
    assert_int_equal(fake->records_freed, 1);
}

/* The record is not used. */
static void test_a_record_that_is_opened_at_the_end(void **state)
{
    (void)state;
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    fake->options.capture = CAPTURE_AUTO;
    fake->record_error = 0;
    fake->holds_record = true;
    fake_begin();
    fake_ticks(1);
    fake_end();
    assert_int_equal(fake->records_opened, 1);
    assert_int_equal(fake->records_freed, 1);
    assert_false(process->is_recorded);
    assert_false(fake->sampler.counts.has_switch_record);
}

static bool has_event_if_registers_are_needed(const struct fake_thread *thread)
{
    fake_request_of(thread->tid, (struct request){.kind = REQUEST_REGISTERS});
    fake_wake();
    return thread->is_armed;
}

/* They would still cost each switch more than the record does. */
static void test_threads_have_no_events_beside_the_record(void **state)
{
    (void)state;
    struct fake_process *process = fake_process(PID);
    struct fake_thread *first = fake_thread(process, PID, FAKE_SLEEPS);
    struct fake_thread *second = fake_thread(process, TID, FAKE_SLEEPS);
    fake->options.capture = CAPTURE_AUTO;
    fake->record_error = 0;
    fake->holds_record = true;
    fake_begin();
    fake_ticks(1);
    assert_true(has_event_if_registers_are_needed(first));
    await_record(process);
    assert_false(first->is_armed);
    assert_false(has_event_if_registers_are_needed(second));
}

static void test_a_record_is_closed_at_the_end(void **state)
{
    (void)state;
    begin_with_runner();
    assert_true(fake->sampler.counts.has_switch_record);
    assert_int_equal(fake->sampler.counts.record_refusal, 0);
    fake_end();
    assert_int_equal(fake->records_freed, 1);
}

static void test_the_record_knows_when_ticks_are(void **state)
{
    (void)state;
    begin_with_runner();
    for (uint64_t tick = 1; tick < 20; tick++)
        assert_int_equal(ticks_due_ns(&fake->recorded_ticks, tick - 1), tick_ns(tick));
}

/* The sampling thread gets no CPU for many ticks. */
static void test_ticks_that_nobody_was_there_for(void **state)
{
    (void)state;
    struct fake_thread *thread = begin_with_runner();
    for (uint64_t tick = 10; tick < 30; tick += 5)
        fake_departs(thread, THREAD_SLEEPING, tick_ns(tick) - 10, tick_ns(tick) + 10,
                     tick_ns(tick) + 20);
    take_tick(40, LATE_NS);
    for (uint64_t tick = 10; tick < 30; tick += 5) {
        const struct observation *told = next_off(TID);
        assert_non_null(told);
        assert_int_equal(told->evidence, EVIDENCE_ASLEEP);
        assert_int_equal(told->tick, tick);
        assert_int_equal(told->ticks, 1);
    }
    assert_null(next_off(TID));
}

#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks_of_a_sleeper),
        cmocka_unit_test(test_ticks_of_one_that_was_woken),
        cmocka_unit_test(test_ticks_of_one_that_was_preempted),
        cmocka_unit_test(test_no_ticks_that_were_told_already),
        cmocka_unit_test(test_ticks_at_the_very_moment),
        TEST(test_a_sleep_that_is_over_is_told_for_its_tick),
        TEST(test_a_sleep_that_is_over_goes_with_its_program),
        TEST(test_a_departure_of_a_process_with_the_same_id),
        TEST(test_a_sleep_over_several_ticks),
        TEST(test_a_sleep_and_the_wait_after_it),
        TEST(test_two_departures_between_looks),
        TEST(test_a_wait_for_a_cpu_that_is_over),
        TEST(test_which_thread_had_the_cpu),
        TEST(test_which_thread_had_the_cpu_at_several_ticks),
        TEST(test_which_thread_had_the_cpu_before_a_move),
        TEST(test_cpus_are_watched_while_threads_wait_for_them),
        TEST(test_a_sleeper_is_looked_at),
        TEST(test_one_that_waits_for_a_cpu_is_looked_at),
        TEST(test_one_that_is_gone_at_the_look),
        TEST(test_running_at_the_tick_and_asleep_at_the_look),
        TEST(test_asleep_at_the_tick_and_woken_at_the_look),
        TEST(test_moved_during_the_copy),
        TEST(test_awake_if_it_was_runnable),
        TEST(test_awake_if_it_waits_for_a_cpu),
        TEST(test_the_first_look_stands_for_its_tick),
        TEST(test_one_that_moved_between_looks_has_moved),
        TEST(test_a_sleep_that_goes_on_is_not_copied_again),
        TEST(test_ticks_after_it_was_woken_are_runnable),
        TEST(test_woken_and_still_there),
        TEST(test_the_sleep_after_it_is_another),
        TEST(test_looks_after_a_long_sleep),
        TEST(test_the_end_of_a_wait_older_than_the_record),
        TEST(test_a_message_for_a_tick_that_was_looked_at),
        TEST(test_a_message_from_before_the_last_look),
        TEST(test_a_thread_that_is_not_known_yet),
        TEST(test_a_thread_that_is_not_wanted),
        TEST(test_lost_messages_are_counted),
        TEST(test_a_worker_that_is_behind_is_told_of_no_end_of_a_sleep),
        TEST(test_a_worker_that_is_behind_is_told_of_no_waker),
        TEST(test_ticks_add_up),
        TEST(test_only_what_may_be_traced_is_recorded),
        TEST(test_not_recorded_from_the_beginning),
        TEST(test_no_record_if_threads_are_stopped),
        TEST(test_no_record_for_a_dump),
        TEST(test_no_record_without_time),
        TEST(test_a_record_that_is_refused),
        TEST(test_why_a_record_is_refused),
        TEST(test_no_log_if_the_record_is_permitted),
        TEST(test_a_record_is_opened_meanwhile),
        TEST(test_a_record_that_is_opened_at_the_end),
        TEST(test_threads_have_no_events_beside_the_record),
        TEST(test_a_record_is_closed_at_the_end),
        TEST(test_the_record_knows_when_ticks_are),
        TEST(test_ticks_that_nobody_was_there_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
