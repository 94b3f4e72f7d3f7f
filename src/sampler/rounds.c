#include "sampler/rounds.h"
#include "base/array.h"
#include "base/clock.h"
#include "sampler/activity_check.h"
#include "sampler/goroutines.h"
#include "sampler/kernel_samples.h"
#include "sampler/listing.h"
#include "sampler/look.h"
#include "sampler/naming.h"
#include "sampler/off_cpu_samples.h"
#include "sampler/processes.h"
#include "sampler/python.h"
#include "sampler/report.h"
#include "sampler/requests.h"
#include "sampler/short_sleeps.h"
#include "sampler/stops.h"
#include "sampler/switch_events.h"
#include "sampler/yield.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS_PART_OF_PERIOD 5
#define LOOKS_BETWEEN_CLOCK 4
/* How many times, at the end, we check for threads that have not stopped yet. The total wait is
 * longer if the machine stalls. */
#define FINISH_LOOKS 250
/* The same for a dump, which has no other stack of these threads, counted from the last thread that
 * stopped: if many threads share few CPUs, they stop one by one. */
#define DUMP_LOOKS 2000
/* Dump only: retry threads that fell asleep before they were stopped. */
#define DUMP_ROUNDS_MAX 10
/* Ticks that found no thread awake are reported after this time at the latest. */
#define IDLE_REPORTED_NS 500000000u

/* ---- Which threads each tick found awake, that is, running or waiting for a CPU: elapsed time is
 * divided among them (count/elapsed.h) ---- */

/* Adds the thread if its last look found it awake. */
static int note_awake(struct sampled_process *process, const struct thread *thread)
{
    struct awake *awake = &process->awake;
    if (!thread->is_awake || !thread_is_counted(thread))
        return 0;
    return array_append(&awake->items, &awake->count, &awake->capacity,
                        (struct awake_thread){thread->number, thread->tid});
}

/* Reports all ticks that were not reported yet; the last `ticks` of them found the threads in the
 * list. */
static int report_ticks(struct sampler *sampler, struct sampled_process *process, uint64_t ticks,
                        uint64_t end_ns)
{
    struct awake *awake = &process->awake;
    struct message message = {.kind = MESSAGE_TICK,
                              .tick = {.process = process->number,
                                       .number = awake->tick,
                                       .ticks = ticks,
                                       .idle_ticks = awake->idle_ticks,
                                       .end_ns = end_ns}};
    if (ticks) {
        message.tick.threads = malloc(awake->count * sizeof *awake->items);
        if (!message.tick.threads)
            return -ENOMEM;
        memcpy(message.tick.threads, awake->items, awake->count * sizeof *awake->items);
        message.tick.thread_count = awake->count;
    }
    int err = channel_send(sampler->channel, &message);
    if (err)
        free(message.tick.threads);
    else
        awake->idle_ticks = 0;
    return err;
}

/* All observations of this tick are done. Ticks that found no thread awake are reported later,
 * together. */
static int report_tick(struct sampler *sampler, struct sampled_process *process, uint64_t tick)
{
    struct awake *awake = &process->awake;
    uint64_t ticks = awake->tick ? tick - awake->tick : 1;
    if (sampler->options->is_dump || tick <= awake->tick || channel_is_behind(sampler->channel))
        return 0;
    awake->tick = tick;
    if (awake->count)
        return report_ticks(sampler, process, ticks, 0);
    awake->idle_ticks += ticks;
    return awake->idle_ticks * sampler->clock.ticks.period_ns >= IDLE_REPORTED_NS
               ? report_ticks(sampler, process, 0, 0)
               : 0;
}

/* The process's time ends. */
static int report_end(struct sampler *sampler, struct sampled_process *process, uint64_t end_ns)
{
    return sampler->options->is_dump ? 0 : report_ticks(sampler, process, 0, end_ns);
}

/* ---- Rounds ---- */

/* Whether any thread still lives: a zombie process keeps its leader in the list until its parent
 * reaps it. If the process has a program, a counted thread was alive at its last look; without a
 * program, the process itself must be checked. */
static bool has_live_thread(struct sampled_process *process)
{
    for (size_t i = 0; process->program && i < process->threads.count; i++) {
        if (thread_is_counted(&process->threads.items[i]))
            return true;
    }
    return process_live_thread(&process->process) != 0;
}

/* False for a thread that a late round has already looked at, or that is due later. */
static bool is_due(const struct sampled_process *process, const struct thread *thread,
                   uint64_t tick)
{
    const struct thread_schedule *schedule = &thread->schedule;
    bool has_turn = tick >= schedule->next_look_tick || activity_check_wants_look(process, thread);
    return has_turn && tick > schedule->looked_tick && !thread_is_in_a_stop(thread) &&
           thread->phase != PHASE_LISTED;
}

/* At the end no thread is left out, except those that a dump already has. */
static bool is_due_at_end(const struct sampler *sampler, const struct thread *thread)
{
    return sampler->clock.end_ns && !thread_is_in_a_stop(thread) &&
           thread->phase != PHASE_UNWANTED &&
           !(sampler->options->is_dump && thread->wants.is_dumped);
}

static int look_at_thread(struct sampler *sampler, struct sampled_process *process,
                          struct thread *thread, uint64_t tick)
{
    if (!process->program)
        return report_assumed(sampler, process, thread);
    listing_read_begin(sampler, process, thread);
    int err = look_at(sampler, process, thread, tick);
    bool is_settled = !sampler->clock.end_ns;
    while (err == -EAGAIN && !is_settled) {
        is_settled = channel_is_settled(sampler->channel); /* waiting longer would not help */
        if (!is_settled)
            channel_await_worker(sampler->channel);
        err = look_at(sampler, process, thread, tick);
    }
    return err;
}

static uint64_t looks_until_ns(const struct sampler *sampler, const struct sampled_process *process)
{
    return process->turns.round_ns + sampler->clock.ticks.period_ns / LOOKS_PART_OF_PERIOD;
}

/* The looks at a process in one tick. */
struct looks {
    uint64_t tick, until_ns;
    pid_t first_tid; /* the thread to begin with, or the next existing one */
    size_t count;
    bool is_behind; /* the worker is behind: the other due threads are only counted */
    bool is_over;   /* the time for looks is over: the other threads are due in the next tick */
};

/* Lets threads that wait for this CPU run. Returns the time. */
static uint64_t yield_cpu(struct sampler *sampler)
{
    uint64_t now_ns = monotonic_ns();
    if (!yield_is_due(&sampler->yielding, now_ns))
        return now_ns;
    sched_yield();
    uint64_t end_ns = monotonic_ns();
    yield_note(&sampler->yielding, now_ns, end_ns);
    return end_ns;
}

static int look_if_due(struct sampler *sampler, struct sampled_process *process,
                       struct thread *thread, struct looks *looks)
{
    struct turns *turns = &process->turns;
    if ((!is_due(process, thread, looks->tick) && !is_due_at_end(sampler, thread)) ||
        looks->is_over)
        return 0;
    if (looks->is_behind) {
        sampler->counts.observations_put_off++;
        return 0;
    }
    stops_let_go(sampler);
    if (++looks->count % LOOKS_BETWEEN_CLOCK == 0 && !sampler->clock.end_ns &&
        yield_cpu(sampler) >= looks->until_ns) {
        turns->next_look_tid = thread->tid;
        turns->has_looks_left = looks->is_over = true;
        return 0;
    }
    /* Even a look that needs no snapshot sends a message. */
    int err = channel_is_behind(sampler->channel)
                  ? -EAGAIN
                  : look_at_thread(sampler, process, thread, looks->tick);
    if (err != -EAGAIN)
        return err;
    turns->next_look_tid = thread->tid;
    sampler->counts.observations_put_off++;
    turns->has_looks_left = looks->is_behind = true;
    return 0;
}

/* Which threads of a table to look at, by what their last looks found. */
enum part { MOVING = 1, RESTING = 2 };

static int look_at_part(struct sampler *sampler, struct sampled_process *process,
                        struct looks *looks, unsigned parts)
{
    struct threads *threads = &process->threads;
    size_t place = threads_place_from(threads, looks->first_tid);
    bool asks_all = sampler->clock.end_ns || process->activity_check.is_sweeping;
    int err = 0;
    for (size_t i = 0; i < threads->count && !err; i++, place++) {
        if (place == threads->count)
            place = 0;
        uint64_t due_tick = threads->due_ticks[place];
        if (!(parts & (due_tick ? RESTING : MOVING)) || (!asks_all && looks->tick < due_tick))
            continue;
        struct thread *thread = &threads->items[place];
        err = look_if_due(sampler, process, thread, looks);
        threads->due_ticks[place] = thread->schedule.next_look_tick;
        /* A thread that is being stopped, or is not observed in time, keeps its state. */
        if (!err)
            err = note_awake(process, thread);
    }
    return err;
}

/* If there are more threads than a part of the time between ticks allows, or than the worker has
 * room for, the next tick continues with the others. Otherwise threads that move come first, so
 * that they do not move on during looks at others. */
static int look_at_all(struct sampler *sampler, struct sampled_process *process)
{
    const struct clock *clock = &sampler->clock;
    struct turns *turns = &process->turns;
    struct looks looks = {
        .tick = ticks_until(&clock->ticks, clock_now_ns(clock)),
        .until_ns = looks_until_ns(sampler, process),
        .first_tid = turns->next_look_tid,
    };
    bool takes_turns = turns->has_looks_left || clock->end_ns;
    process->awake.count = 0;
    turns->has_looks_left = process->listing.lacks_begins;
    if (takes_turns)
        return look_at_part(sampler, process, &looks, MOVING | RESTING);
    int err = look_at_part(sampler, process, &looks, MOVING);
    return err ? err : look_at_part(sampler, process, &looks, RESTING);
}

/* Ends the process's time here, even if its parent has not reaped it yet and its first thread
 * remains a zombie for long. */
static int end_process(struct sampler *sampler, struct sampled_process *process)
{
    const struct reading until = {.at_ns = listing_gone_ns(sampler, process)};
    int err = 0;
    process->has_exited = true;
    /* Its id may be reused. */
    off_cpu_samples_unfollow(sampler, process);
    if (sampler->kernel.source)
        perf_source_unfollow(sampler->kernel.source, process->process.pid);
    for (size_t i = 0; i < process->threads.count && !err; i++) {
        struct thread *thread = &process->threads.items[i];
        err = report_gone(sampler, process, thread, &until, false);
        switch_events_close(sampler, thread);
        watches_forget(&sampler->watches, thread->number);
        thread->life.has_exited = true;
    }
    if (!err)
        err = report_end(sampler, process, until.at_ns);
    if (!err)
        err = report_program_ended(sampler, process);
    if (!err)
        err = report_to_collector(
            sampler, (struct notice){.kind = NOTICE_GONE, .process = process->objects});
    process->objects = NULL;
    return err;
}

/* Whether all threads are due. */
static bool all_are_due(const struct sampled_process *process, uint64_t tick)
{
    const struct threads *threads = &process->threads;
    for (size_t i = 0; i < threads->count; i++) {
        if (threads->due_ticks[i] > tick)
            return false;
    }
    return true;
}

/* Looks at the known threads. */
static int look_first(struct sampler *sampler, struct sampled_process *process)
{
    if (!all_are_due(process, ticks_until(&sampler->clock.ticks, process->turns.round_ns)))
        activity_check_read(process);
    if (!sampler->clock.end_ns)
        listing_read_begins(sampler, process, looks_until_ns(sampler, process));
    return look_at_all(sampler, process);
}

/* Updates the process's program and threads. Sets *ret_is_new if it runs another program or has new
 * threads. */
static int update_process(struct sampler *sampler, struct sampled_process *process,
                          bool *ret_is_new)
{
    uint64_t threads_seen = sampler->counts.threads_seen;
    ptrace_source_drop_dead_leader(sampler->stopped, process->process.pid,
                                   process->process.proc_fd);
    int err = sampler_lists_threads(sampler->options) ? listing_update(sampler, process) : 0;
    if (!err)
        err = processes_update_program(sampler, process);
    *ret_is_new = sampler->counts.threads_seen != threads_seen ||
                  process->span.opened_ns >= process->turns.round_ns;
    return err;
}

/* Looks need not check whether the process still runs its program, because each copy does. */
static int begin_round_of(struct sampler *sampler, struct sampled_process *process)
{
    struct turns *turns = &process->turns;
    if (process->has_exited)
        return 0;
    stops_let_go(sampler);
    turns->last_round_ns = turns->round_ns;
    turns->round_ns = monotonic_ns();
    activity_check_need_not_read(process);
    return !sampler->options->has_no_time && process->program ? look_first(sampler, process) : 0;
}

static int end_round_of(struct sampler *sampler, struct sampled_process *process)
{
    struct turns *turns = &process->turns;
    bool has_time = !sampler->options->has_no_time, is_new;
    if (process->has_exited)
        return 0;
    int err = stops_take(sampler);
    if (!err)
        err = naming_take_due(sampler, process);
    if (!err)
        err = update_process(sampler, process, &is_new);
    if (err)
        return err;
    if (!ptrace_source_awaits(sampler->stopped, process->process.pid) && !has_live_thread(process))
        return end_process(sampler, process);
    if (!has_time)
        return 0;
    if (is_new || !process->program)
        err = look_at_all(sampler, process);
    uint64_t tick = ticks_until(&sampler->clock.ticks, turns->round_ns);
    if (!err)
        err = python_update(process);
    if (!err)
        err = python_report_tasks(sampler, process, false);
    if (!err)
        err = goroutines_update(sampler, process);
    activity_check_judge(process, tick, !turns->has_looks_left);
    return err ? err : report_tick(sampler, process, tick);
}

static int begin_rounds(struct sampler *sampler, size_t first_process)
{
    int err = 0;
    for (size_t i = first_process; i < sampler->process_count && !err; i++)
        err = begin_round_of(sampler, sampler->processes[i]);
    return err;
}

/* Whether the kernel's samples are taken before the looks. */
static bool samples_come_first(const struct sampler *sampler)
{
    /* With the record, looks may be late. Looks that are left over would take all snapshots. At the
     * end, a thread that has a sample is not stopped to get one. */
    if (sampler->off_cpu.record || sampler->clock.end_ns || rounds_have_looks_left(sampler))
        return true;
    /* A sample's context is certain if the look before it found the same one. */
    for (size_t i = 0; i < sampler->process_count; i++) {
        if (sampler->processes[i]->context.kind != CONTEXT_NOWHERE)
            return true;
    }
    return false;
}

/* Looks at all processes come first, because threads move on while anything else is done. Only the
 * record's completed waits precede them: a look covers all ticks up to its own, so an earlier wait
 * that is taken after the look would have no ticks left. */
int rounds_begin(struct sampler *sampler)
{
    size_t known = sampler->process_count;
    sampler->off_cpu.waker_stacks = 0;
    stops_note_exits(sampler);
    int err = off_cpu_samples_take(sampler);
    if (!err && samples_come_first(sampler))
        err = kernel_samples_take(sampler, false);
    if (++sampler->first_process >= known)
        sampler->first_process = 0;
    if (!err)
        err = begin_rounds(sampler, 0);
    if (!err && !sampler->clock.end_ns)
        err = processes_find(sampler);
    if (!err)
        err = begin_rounds(sampler, known);
    short_sleeps_stop(sampler);
    if (!err)
        err = kernel_samples_take(sampler, false);
    for (size_t i = 0; i < sampler->process_count && !err; i++)
        err = end_round_of(sampler, sampler->processes[i]);
    return err ? err : kernel_samples_take(sampler, true);
}

void rounds_sweep(struct sampler *sampler)
{
    uint64_t tick = ticks_until(&sampler->clock.ticks, clock_now_ns(&sampler->clock));
    for (size_t i = 0; i < sampler->process_count; i++)
        activity_check_sweep(sampler->processes[i], tick);
}

bool rounds_have_looks_left(const struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->process_count; i++) {
        const struct sampled_process *process = sampler->processes[i];
        if (!process->has_exited && process->turns.has_looks_left)
            return true;
    }
    return false;
}

int rounds_continue(struct sampler *sampler)
{
    int err = requests_serve(sampler);
    if (!err)
        err = stops_continue(sampler);
    channel_ring_if_due(sampler->channel, monotonic_ns());
    return err;
}

/* Dump only: takes the samples for which it waits. Threads without a sample are looked at again:
 * those that have fallen asleep are read, and those whose samples were awaited for long enough are
 * stopped. */
static int take_awaited(struct sampler *sampler)
{
    if (!sampler->kernel.is_awaited)
        return 0;
    sampler->kernel.is_awaited = false;
    int err = kernel_samples_take(sampler, true);
    for (size_t i = 0; i < sampler->process_count && !err; i++) {
        if (!sampler->processes[i]->has_exited)
            err = look_at_all(sampler, sampler->processes[i]);
    }
    return err;
}

/* Waits for threads to stop, for samples, and for the worker to finish; meanwhile serves the
 * worker's requests. */
static int settle(struct sampler *sampler)
{
    bool is_dump = sampler->options->is_dump;
    int looks_max = is_dump ? DUMP_LOOKS : FINISH_LOOKS, err = 0;
    size_t pending = ptrace_source_pending(sampler->stopped);
    for (int looks = 0; !err; looks++) {
        bool has_stops = pending > 0 && looks < looks_max;
        if (!has_stops && !sampler->kernel.is_awaited && channel_is_settled(sampler->channel))
            break;
        channel_await_worker(sampler->channel);
        err = take_awaited(sampler);
        if (!err)
            err = rounds_continue(sampler);
        if (is_dump && ptrace_source_pending(sampler->stopped) < pending)
            looks = 0;
        pending = ptrace_source_pending(sampler->stopped);
    }
    return err;
}

static int last_round(struct sampler *sampler)
{
    int err = rounds_begin(sampler);
    if (!err)
        err = rounds_continue(sampler);
    return err ? err : settle(sampler);
}

/* Whether a dump lacks the stack of a thread that is not being stopped for it. */
static bool lacks_stack(const struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->process_count; i++) {
        const struct sampled_process *process = sampler->processes[i];
        for (size_t j = 0; process->program && j < process->threads.count; j++) {
            const struct thread *thread = &process->threads.items[j];
            if (thread_is_counted(thread) && thread->phase != PHASE_STOPPING &&
                !thread->wants.is_dumped)
                return true;
        }
    }
    return false;
}

/* A thread that was asked to stop and has not stopped yet has not run since. */
static int finish_process(struct sampler *sampler, struct sampled_process *process)
{
    const struct reading until = {.at_ns = sampler->clock.end_ns};
    int err = 0;
    for (size_t i = 0; i < process->threads.count && !err; i++) {
        struct thread *thread = &process->threads.items[i];
        if (thread->phase == PHASE_STOPPING)
            err = report_assumed(sampler, process, thread);
        if (!err)
            err = report_gone(sampler, process, thread, &until, true);
    }
    if (!err && !sampler->options->is_dump)
        err = goroutines_finish(sampler, process);
    if (!err)
        err = python_report_tasks(sampler, process, true);
    if (!err && !process->has_exited)
        err = report_end(sampler, process, until.at_ns);
    return err ? err : report_program_ended(sampler, process);
}

int rounds_finish(struct sampler *sampler)
{
    int err = last_round(sampler);
    for (int i = 1; i < DUMP_ROUNDS_MAX && sampler->options->is_dump && !err; i++) {
        if (stops_are_pending(sampler) || !lacks_stack(sampler))
            break;
        err = last_round(sampler);
    }
    stops_note_exits(sampler);
    for (size_t i = 0; i < sampler->process_count && !err; i++)
        err = finish_process(sampler, sampler->processes[i]);
    return err;
}
