#include "sampler/off_cpu_samples.h"
#include "base/background_thread.h"
#include "base/buffer.h"
#include "base/random.h"
#include "proc/kallsyms.h"
#include "proc/procfs.h"
#include "sampler/idle.h"
#include "sampler/listing.h"
#include "sampler/otel_context.h"
#include "sampler/python.h"
#include "sampler/report.h"
#include "sampler/schedule.h"
#include "sampler/subject.h"
#include "sampler/switch_events.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The record keeps the stack of a thread that leaves its CPU within this part of a period before a
 * tick, or that has not left it for STACK_PAUSE_NS. A thread that left earlier and still sleeps at
 * the tick usually also sleeps at the look, and its stack is read then. */
#define STACK_WINDOW_PART 2
#define STACK_PAUSE_NS 500000u
/* The stack of a completed wait can't be requested again, so more of it is read than is usually
 * needed. */
#define PAST_STACK_BYTES (32u << 10)
/* How many wakers' stacks are read for each tick: thousands of waits may end at once. */
#define WAKER_STACKS_MAX 128
/* CPUs are watched for this long after a wait for one was found. */
#define WATCH_NS 1000000000u
/* The verifier's log of one program has at most 16 MiB (libbpf's BPF_LOG_BUF_SIZE). */
#define LOG_BYTES_MAX (32u << 20)

/* ---- Begin and end ---- */

/* Opening takes some 100 ms: the kernel's types are read and its verifier checks the programs.
 * Meanwhile samples are taken without a record. */
struct record_opening {
    pthread_t thread;
    struct switch_options options;
    struct switch_record *record;
    struct buffer log;
    int err;
    atomic_bool is_done;
};

static void append_log(void *argument, const char *text)
{
    struct buffer *log = argument;
    if (log->length + strlen(text) <= LOG_BYTES_MAX)
        buffer_puts(log, text);
}

static void *open_record(void *argument)
{
    struct record_opening *opening = argument;
    prctl(PR_SET_NAME, "fgprof-bpf");
    opening->err = switch_record_open(&opening->options, &opening->record);
    atomic_store(&opening->is_done, true);
    return NULL;
}

void off_cpu_samples_start(struct sampler *sampler)
{
    const struct ticks *ticks = &sampler->clock.ticks;
    if (sampler->off_cpu.record && ticks->start_ns)
        switch_record_set_ticks(sampler->off_cpu.record, ticks);
}

/* Starts to use the record, or notes why there is none. Returns 0 or -ENOMEM; if a record is
 * required, also the error that prevents it. */
static int use_record(struct sampler *sampler, struct switch_record *record, int err)
{
    struct off_cpu_samples *samples = &sampler->off_cpu;
    samples->record = record;
    samples->source = (struct record_source){record, &sampler->watches, false};
    sampler->counts.record_refusal = -err;
    sampler->counts.has_switch_record = !err;
    if (err) {
        off_cpu_samples_end(sampler);
        return err == -ENOMEM || sampler->options->capture == CAPTURE_RECORD ? err : 0;
    }
    /* Threads' events add nothing, and cost several times as much. */
    switch_events_end(sampler);
    off_cpu_samples_start(sampler);
    for (size_t i = 0; i < sampler->process_count; i++)
        off_cpu_samples_follow(sampler, sampler->processes[i]);
    return 0;
}

static int start_opening(struct sampler *sampler)
{
    struct record_opening *opening = calloc(1, sizeof *opening);
    if (!opening)
        return -ENOMEM;
    opening->options = (struct switch_options){
        .stack_window_ns = sampler->clock.ticks.period_ns / STACK_WINDOW_PART,
        .stack_pause_ns = STACK_PAUSE_NS,
        .tells_wakes = true,
        .keeps_chains = sampler->options->has_kernel_stacks && !kallsyms_check(KALLSYMS_PATH),
    };
    if (sampler->options->take_bpf_log) {
        opening->options.log = append_log;
        opening->options.log_argument = &opening->log;
    }
    int err = background_thread_start(open_record, opening, &opening->thread);
    if (err) {
        free(opening);
        return use_record(sampler, NULL, err);
    }
    sampler->off_cpu.opening = opening;
    return 0;
}

/* Waits until the record is open. Returns 0, or why there is none. */
static int join_opening(struct sampler *sampler, struct switch_record **ret_record)
{
    struct record_opening *opening = sampler->off_cpu.opening;
    pthread_join(opening->thread, NULL);
    sampler->off_cpu.opening = NULL;
    if (opening->err && opening->log.length)
        sampler->options->take_bpf_log(opening->log.bytes, sampler->options->bpf_log_context);
    buffer_free(&opening->log);
    *ret_record = opening->record;
    int err = opening->err;
    free(opening);
    return err;
}

static int end_opening(struct sampler *sampler)
{
    struct switch_record *record;
    if (!sampler->off_cpu.opening)
        return 0;
    int err = join_opening(sampler, &record);
    return use_record(sampler, record, err);
}

int off_cpu_samples_begin(struct sampler *sampler)
{
    const struct sampler_options *options = sampler->options;
#ifdef FGPROF_WITHOUT_RECORD
    return 0;
#endif
    if (options->capture == CAPTURE_PTRACE || options->is_dump || options->has_no_time ||
        sampler->off_cpu.was_begun)
        return 0;
    sampler->off_cpu.was_begun = true;
    int err = start_opening(sampler);
    /* Fail before anything is sampled. */
    return err || options->capture != CAPTURE_RECORD ? err : end_opening(sampler);
}

void off_cpu_samples_end(struct sampler *sampler)
{
    struct off_cpu_samples *samples = &sampler->off_cpu;
    /* The recording ends before the record is open, so it is not used. */
    if (samples->opening)
        sampler->counts.record_refusal = -join_opening(sampler, &samples->record);
    switch_record_free(samples->record);
    samples->record = NULL;
    samples->wait_ns = 0;
}

/* The file shows registers, so only a process that may trace the thread may read it (proc(5)). */
static bool may_read_registers(const struct sampled_process *process)
{
    int fd = openat(process->process.proc_fd, "syscall", O_RDONLY | O_CLOEXEC);
    char byte;
    bool may_read = fd >= 0 && pread(fd, &byte, sizeof byte, 0) >= 0;
    if (fd >= 0)
        close(fd);
    return may_read;
}

void off_cpu_samples_follow(struct sampler *sampler, const struct sampled_process *process)
{
    struct switch_record *record = sampler->off_cpu.record;
    if (!record)
        return;
    if (may_read_registers(process))
        switch_record_follow(record, process->process.pid);
    else
        switch_record_unfollow(record, process->process.pid);
}

void off_cpu_samples_unfollow(struct sampler *sampler, const struct sampled_process *process)
{
    if (sampler->off_cpu.record)
        switch_record_unfollow(sampler->off_cpu.record, process->process.pid);
}

static void watch_cpus(struct off_cpu_samples *samples, uint64_t wait_ns)
{
    if (!samples->wait_ns != !wait_ns)
        switch_record_watch_cpus(samples->record, wait_ns != 0);
    samples->wait_ns = wait_ns;
}

int off_cpu_samples_continue(struct sampler *sampler)
{
    struct off_cpu_samples *samples = &sampler->off_cpu;
    bool is_opened = samples->opening && atomic_load(&samples->opening->is_done);
    if (samples->wait_ns && clock_now_ns(&sampler->clock) >= samples->wait_ns + WATCH_NS)
        watch_cpus(samples, 0);
    return is_opened ? end_opening(sampler) : 0;
}

/* ---- Ticks ---- */

static uint64_t within(uint64_t low, uint64_t value, uint64_t high)
{
    return value < low ? low : value < high ? value : high;
}

/* How many ticks came before that time. A tick at exactly that time is not included: in the record,
 * a thread that leaves its CPU at the time of a tick is off it at that tick. */
static uint64_t ticks_before(const struct ticks *all, uint64_t at_ns)
{
    return at_ns ? ticks_until(all, at_ns - 1) : 0;
}

struct off_cpu_ticks off_cpu_ticks_since(const struct ticks *all, uint64_t known_tick,
                                         uint64_t tick, const struct observation *observation)
{
    if (tick <= known_tick)
        return (struct off_cpu_ticks){0};
    uint64_t departed_tick = ticks_before(all, observation->record.departed_ns);
    uint64_t since_tick = within(known_tick, departed_tick, tick), woken_tick = tick;
    if (observation->record.woken_ns)
        woken_tick = within(since_tick, ticks_before(all, observation->record.woken_ns), tick);
    return (struct off_cpu_ticks){woken_tick - since_tick, tick - woken_tick};
}

/* ---- Which thread had the CPU ---- */

/* Each tick may find another thread. A random tick represents all: the last one would always find
 * the thread whose leaving the CPU ends the wait. */
void off_cpu_samples_find_cpu_user(struct sampler *sampler, struct observation *observation,
                                   uint64_t last_tick, uint64_t ticks)
{
    struct off_cpu_samples *samples = &sampler->off_cpu;
    const struct clock *clock = &sampler->clock;
    struct cpu_user *user = &observation->record.cpu_user;
    if (!ticks || !samples->record)
        return;
    uint64_t tick = last_tick - random_below((uint32_t)ticks, clock->ticks.seed, last_tick);
    uint64_t tick_ns = ticks_due_ns(&clock->ticks, tick - 1),
             moved_ns = observation->record.moved_ns;
    watch_cpus(samples, clock_now_ns(clock));
    if (moved_ns && moved_ns <= tick_ns)
        return; /* it is not known for which CPU the thread waited then */
    if (!switch_record_find_cpu_user(samples->record, observation->record.woken_cpu, tick_ns,
                                     user) ||
        user->kind != WAKE_BY_THREAD)
        return;
    struct sampled_process *process = sampler_process(sampler, user->process_id);
    struct thread *thread = sampled_process_thread(process, user->tid);
    if (!thread || !thread_is_counted(thread))
        return;
    user->is_sampled = true;
    user->thread = thread->number;
    user->process = process->number;
}

/* ---- Departures that the record reports ---- */

/* The process of the departure. If another process has taken over its id, which the record knows
 * before we notice, that process's first thread was created later. */
static struct sampled_process *process_of(const struct sampler *sampler,
                                          const struct departure *departure)
{
    struct sampled_process *process = sampler_process(sampler, departure->process_id);
    bool is_later = process && departure->tid == departure->process_id &&
                    departure->start_ns > process->known_ns;
    return is_later ? NULL : process;
}

static enum program_match find_program(struct sampler *sampler, const struct departure *departure,
                                       struct sampled_process **ret_process,
                                       struct thread **ret_thread)
{
    struct sampled_process *process = process_of(sampler, departure);
    struct thread *thread = sampled_process_thread(process, departure->tid);
    *ret_process = process;
    *ret_thread = thread;
    /* A thread that is being stopped moves because of us. */
    if (!thread || !thread_is_counted(thread) || !process->program ||
        thread->phase == PHASE_STOPPING)
        return PROGRAM_NONE;
    uint64_t exec_ns = sampler->kernel.source
                           ? perf_source_exec_ns(sampler->kernel.source, process->process.pid)
                           : 0;
    return sampled_process_match(process, exec_ns, departure->out_ns);
}

/* The last observation found the thread where it was off its CPU: reports until when it was there.
 * The kernel's account of the thread, `until`, has not changed meanwhile. */
static int report_same(struct sampler *sampler, struct sampled_process *process,
                       struct thread *thread, struct observation *observation, struct reading until,
                       struct off_cpu_ticks ticks)
{
    until.at_ns = observation->record.woken_ns ? observation->record.woken_ns
                                               : observation->record.returned_ns;
    schedule_slept_until(&thread->schedule, &until, ticks.asleep, ticks.runnable);
    sampler->counts.recorded_samples += ticks.asleep + ticks.runnable;
    observation->evidence = ticks.runnable ? EVIDENCE_WOKEN : EVIDENCE_UNMOVED;
    observation->state = ticks.runnable ? THREAD_RUNNABLE : THREAD_SLEEPING;
    if (!ticks.runnable)
        return report_unmoved(sampler, process, thread, observation);
    observation->now = thread_read_account(sampler, process, thread);
    return report_woken(sampler, process, thread, observation);
}

int off_cpu_samples_report(struct sampler *sampler, struct sampled_process *process,
                           struct thread *thread, struct observation *observation,
                           struct off_cpu_ticks ticks)
{
    struct thread_schedule *schedule = &thread->schedule;
    uint64_t tick = schedule->looked_tick;
    schedule->look_ticks = ticks.asleep ? ticks.asleep : ticks.runnable;
    if (!ticks.asleep) {
        struct watch *watch = watches_get(&sampler->watches, thread->number);
        observation->evidence = EVIDENCE_WAITING;
        observation->state = THREAD_RUNNABLE;
        observation->wait.has_call = false;
        if (watch)
            watch->departed_ns = 0; /* the worker has not seen it asleep there */
    }
    schedule->looked_tick = ticks.asleep ? tick - ticks.runnable : tick;
    struct observation woken = *observation;
    int err = report_observed(sampler, process, thread, observation);
    schedule->looked_tick = tick;
    if (err || !ticks.asleep || !ticks.runnable)
        return err;
    schedule->look_ticks = ticks.runnable;
    woken.evidence = EVIDENCE_WOKEN;
    woken.state = THREAD_RUNNABLE;
    woken.wait.has_call = woken.wait.has_preemptions = false;
    return report_woken(sampler, process, thread, &woken);
}

/* The file of a descriptor seldom changes while a thread waits on it. */
static void read_link(const struct sampled_process *process, struct observation *observation)
{
    if (observation->wait.call.kind != CALL_FILE)
        return;
    call_read_link(&observation->wait.call, process->process.proc_fd, &observation->wait.memory);
    observation->wait.has_call = true;
}

/* Says how much of the thread's stacks is wanted, for later departures too. */
static struct subject want_stacks(struct sampler *sampler, const struct sampled_process *process,
                                  const struct thread *thread, const struct past_departure *past)
{
    struct subject subject = subject_of(sampler, process, thread);
    record_source_want_stack(sampler->off_cpu.record, past->slot, past->generation, &subject);
    if (subject.stack_limit < PAST_STACK_BYTES)
        subject.stack_limit = PAST_STACK_BYTES;
    return subject;
}

static struct snapshot *take_snapshot(struct sampler *sampler, const struct past_departure *past,
                                      const struct subject *subject)
{
    const struct stack_place other = record_source_other_stack(past, subject);
    return snapshot_pool_take(channel_snapshots(sampler->channel), subject->stack_limit, &other);
}

static int report_new(struct sampler *sampler, struct sampled_process *process,
                      struct thread *thread, const struct past_departure *past,
                      struct observation *observation, struct off_cpu_ticks ticks)
{
    const struct subject subject = want_stacks(sampler, process, thread, past);
    /* The stack may be that of a program that was executed since, whose mappings are known in the
     * next round. */
    bool is_current = sampled_process_is_current(process);
    if (is_current && past->stack_bytes && past->departure.registers.known)
        observation->snapshot = take_snapshot(sampler, past, &subject);
    if (!observation->snapshot) {
        sampler->off_cpu.without_stack++;
        schedule_unseen(&thread->schedule, ticks.asleep + ticks.runnable);
        return 0;
    }
    record_source_read_past(past, &subject, observation);
    thread->call = (struct thread_call){0};
    read_link(process, observation);
    sampler->counts.recorded_samples += ticks.asleep + ticks.runnable;
    otel_context_read_late(sampler, process, thread, observation->snapshot);
    observation->now = thread_read_account(sampler, process, thread);
    observation->served = thread->wants.served;
    return off_cpu_samples_report(sampler, process, thread, observation, ticks);
}

/* ---- Wakers ---- */

/* The waker continues to run, so the rest of its stack is read like that of a completed wait. */
static void read_waker(struct sampler *sampler, struct sampled_process *process,
                       struct thread *thread, const struct past_departure *past,
                       struct observation *waker)
{
    const struct subject subject = want_stacks(sampler, process, thread, past);
    waker->snapshot = take_snapshot(sampler, past, &subject);
    if (!waker->snapshot)
        return;
    record_source_read_past(past, &subject, waker);
    waker->now.at_ns = past->departure.out_ns;
    waker->record.departed_ns = waker->record.returned_ns = past->departure.out_ns;
    waker->served = thread->wants.served;
    waker->knows_python = process->python.place.runtime != 0;
}

static void find_waker(struct sampler *sampler, const struct past_departure *past,
                       struct message *message)
{
    const struct departure *departure = &past->departure;
    struct observation *waker = &message->wake.waker;
    struct sampled_process *process;
    struct thread *thread;
    bool is_here = find_program(sampler, departure, &process, &thread) == PROGRAM_CURRENT;
    if (!process || past->wake.thread != WAKE_BY_THREAD)
        return;
    message->wake.is_sampled = true;
    waker->process = process->number;
    if (!thread || !is_here)
        return;
    waker->thread = thread->number;
    waker->tid = thread->tid;
    if (!past->stack_bytes || !departure->registers.known ||
        !program_is_current(process->program) || channel_is_behind(sampler->channel) ||
        sampler->off_cpu.waker_stacks++ >= WAKER_STACKS_MAX)
        return;
    waker->process_id = process->process.pid;
    waker->program = program_hold(process->program);
    waker->tick = thread->schedule.looked_tick;
    waker->round_ns = process->turns.round_ns;
    read_waker(sampler, process, thread, past, waker);
}

static int report_wake(struct sampler *sampler, const struct past_departure *past,
                       const struct thread *thread)
{
    struct message message = {
        .kind = MESSAGE_WAKE,
        .wake = {.thread = thread->number, .tid = thread->tid, .seen = malloc(sizeof past->wake)},
    };
    if (!message.wake.seen)
        return -ENOMEM;
    *message.wake.seen = past->wake;
    find_waker(sampler, past, &message);
    int err = channel_send(sampler->channel, &message);
    if (err) {
        struct observation *waker = &message.wake.waker;
        if (waker->snapshot)
            snapshot_pool_give(channel_snapshots(sampler->channel), waker->snapshot, false);
        observation_release(waker);
        free(message.wake.seen);
    }
    return err;
}

/* If a wait is older than the record, the record knows only its end, not the departure. The last
 * look, which may be long ago, found the thread asleep: it has slept until now. */
static int take_end_of_old_wait(struct sampler *sampler, struct sampled_process *process,
                                struct thread *thread, uint64_t woken_ns)
{
    struct thread_schedule *schedule = &thread->schedule;
    struct observation observation = {.record.woken_ns = woken_ns, .asleep.is_over = true};
    static const struct reading unknown = {0};
    bool is_proven = schedule->proven_tick > schedule->asleep_since_tick;
    uint64_t woken_tick = ticks_before(&sampler->clock.ticks, woken_ns);
    if (thread->phase != PHASE_ASLEEP || woken_tick <= schedule->looked_tick)
        return 0;
    const struct off_cpu_ticks ticks = {.asleep = woken_tick - schedule->looked_tick};
    listing_read_begin(sampler, process, thread);
    schedule_was_asleep(schedule, woken_tick);
    int err = report_same(sampler, process, thread, &observation,
                          is_proven ? schedule->proven : unknown, ticks);
    threads_forget_sleep(&process->threads, thread);
    return err;
}

static int take_wake(struct sampler *sampler, const struct past_departure *past)
{
    struct sampled_process *process = sampler_process(sampler, past->woken_process_id);
    struct thread *thread = sampled_process_thread(process, past->woken_tid);
    if (!thread || !thread_is_counted(thread))
        return 0;
    /* If the worker is behind, it learns of the wait, but not what ended it. */
    int err = channel_is_behind(sampler->channel) ? 0 : report_wake(sampler, past, thread);
    if (err || past->wake.departed_ns)
        return err;
    return take_end_of_old_wait(sampler, process, thread, past->departure.out_ns);
}

/* ---- Completed departures ---- */

static int take_sampled(struct sampler *sampler, const struct past_departure *past)
{
    struct sampled_process *process = sampler_process(sampler, past->departure.process_id);
    return process ? python_keep_copy(process, past) : 0;
}

/* Takes a departure that ended before we looked, as a look at the last tick that it spans. */
static int take(void *argument, const struct past_departure *past)
{
    struct sampler *sampler = argument;
    const struct departure *departure = &past->departure;
    if (past->kind == SWITCH_MESSAGE_WAKE)
        return take_wake(sampler, past);
    if (past->kind == SWITCH_MESSAGE_SAMPLE)
        return take_sampled(sampler, past);
    struct observation observation = {
        .record.departed_ns = departure->out_ns,
        .record.woken_ns = departure->runnable_ns,
        .record.woken_cpu = departure->runnable_cpu,
        .record.moved_ns = departure->moved_ns,
        .record.returned_ns = departure->in_ns,
        .asleep.is_over = true,
    };
    struct sampled_process *process;
    struct thread *thread;
    if (find_program(sampler, departure, &process, &thread) != PROGRAM_CURRENT)
        return 0;
    struct thread_schedule *schedule = &thread->schedule;
    const struct off_cpu_ticks ticks = off_cpu_ticks_since(
        &sampler->clock.ticks, schedule->looked_tick, past->last_tick, &observation);
    if (!ticks.asleep && !ticks.runnable)
        return 0;
    struct watch *watch = watches_get(&sampler->watches, thread->number);
    /* If the worker is behind, only as many departures are reported as there are snapshots. */
    bool is_same = watch && watch->departed_ns == departure->out_ns && !thread->wants.copy &&
                   !channel_is_behind(sampler->channel);
    off_cpu_samples_find_cpu_user(sampler, &observation, past->last_tick, ticks.runnable);
    listing_read_begin(sampler, process, thread);
    schedule_was_asleep(schedule, past->last_tick);
    idle_note_departure(&thread->idle, departure);
    thread->is_awake = ticks.runnable > 0;
    int err;
    if (is_same) {
        const struct reading account = {.has_activity = watch->has_activity,
                                        .activity = watch->activity};
        err = report_same(sampler, process, thread, &observation, account, ticks);
    } else {
        err = report_new(sampler, process, thread, past, &observation, ticks);
    }
    threads_forget_sleep(&process->threads, thread);
    if (watch)
        watch->departed_ns = 0;
    return err;
}

int off_cpu_samples_take(struct sampler *sampler)
{
    struct off_cpu_samples *samples = &sampler->off_cpu;
    if (!samples->record)
        return 0;
    int err = switch_record_drain(samples->record, take, sampler);
    const struct switch_counters counters = switch_record_counters(samples->record);
    sampler->counts.recorded_lost = samples->without_stack + counters.lost_messages;
    sampler->counts.wakes_lost = counters.lost_wakes;
    sampler->counts.hidden_returns = counters.hidden_returns;
    sampler->counts.switches_unrecorded = counters.without_slot + counters.without_memory;
    return err < 0 ? err : 0;
}

/* ---- Threads that are still off their CPU ---- */

int off_cpu_samples_observe(struct sampler *sampler, struct sampled_process *process,
                            struct thread *thread, uint64_t tick, struct observation *observation,
                            enum outcome *ret_outcome)
{
    *ret_outcome = OUTCOME_REFUSED;
    if (!sampler->off_cpu.record || !tick)
        return 0;
    struct subject subject = subject_of(sampler, process, thread);
    subject.tick = tick;
    subject.tick_ns = ticks_due_ns(&sampler->clock.ticks, tick - 1);
    *ret_outcome = record_source_observe(&sampler->off_cpu.source, &subject, observation);
    if (*ret_outcome != OUTCOME_PENDING)
        return 0;
    int err = off_cpu_samples_take(sampler);
    observation->record.departed_ns = 0;
    if (thread->schedule.looked_tick < tick)
        *ret_outcome = OUTCOME_RUNNING;
    return err;
}
