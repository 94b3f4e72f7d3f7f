#include "sampler/stops.h"
#include "base/clock.h"
#include "sampler/idle.h"
#include "sampler/look.h"
#include "sampler/report.h"
#include "sampler/subject.h"

/* A thread on a CPU stops within about 30 us: polling for that long without sleeping keeps its
 * pause short. A thread that has not stopped by then is waiting for a CPU, maybe for ours. */
#define SPIN_NS 40000
/* How long a thread that stops later may be held. Polling takes a system call per thread. */
#define LET_GO_EACH_NS 80000

bool stops_are_pending(const struct sampler *sampler)
{
    return ptrace_source_pending(sampler->stopped) > 0;
}

void stops_let_go(struct sampler *sampler)
{
    if (!stops_are_pending(sampler))
        return;
    uint64_t now_ns = monotonic_ns();
    if (now_ns < sampler->let_go_ns + LET_GO_EACH_NS)
        return;
    sampler->let_go_ns = now_ns;
    ptrace_source_let_go(sampler->stopped, 0);
}

/* When a stopped thread was seen: at the look that found it running, or at the beginning of a later
 * round. The stop proves that it still existed a little later, but only running threads have such a
 * proof: counting that time too would make their lives too long. */
static uint64_t seen_ns(const struct sampler *sampler, const struct sampled_process *process,
                        const struct thread *thread)
{
    uint64_t now_ns = clock_now_ns(&sampler->clock), round_ns = process->turns.round_ns;
    uint64_t look_ns = thread->running.now.at_ns;
    uint64_t seen_ns = look_ns > round_ns ? look_ns : round_ns;
    return seen_ns < now_ns ? seen_ns : now_ns;
}

static int begin_stop(struct sampler *sampler, struct sampled_process *process,
                      struct thread *thread)
{
    struct subject subject = subject_of(sampler, process, thread);
    struct snapshot_pool *snapshots = channel_snapshots(sampler->channel);
    struct observation observation = {
        .thread = thread->number,
        .tid = thread->tid,
        .served = thread->wants.served,
        .snapshot = snapshot_pool_take(snapshots, subject.stack_limit, &subject.other_stack),
    };
    if (!observation.snapshot) {
        sampler->counts.observations_put_off++;
        thread_note(thread, EVENT_STOP_OVER);
        return 0;
    }
    subject.asleep = thread->wants.asleep;
    if (!subject.asleep.pc)
        subject.look = thread->running.now;
    subject.awake_ns = thread->running.awake_ns;
    if (thread->visits.is_here)
        subject.came_ns = sampler->visits.came_ns;
    subject.visit_ns = thread->running.visit_ns;
    sampler->visits.has_stops |= thread->visits.is_here;
    subject.tick = sampler->options->is_dump ? 0 : thread->running.tick;
    if (subject.tick)
        subject.tick_ns = ticks_due_ns(&sampler->clock.ticks, subject.tick - 1);
    thread->wants.asleep.pc = 0;
    enum outcome outcome = ptrace_source_observe(sampler->stopped, &subject, &observation);
    thread_note(thread, outcome == OUTCOME_PENDING ? EVENT_STOP_BEGUN : EVENT_STOP_OVER);
    if (outcome == OUTCOME_PENDING)
        return 0;
    snapshot_pool_give(snapshots, observation.snapshot, false);
    if (outcome == OUTCOME_GONE)
        return look_note_gone(sampler, process, thread, seen_ns(sampler, process, thread), true);
    /* A thread that has fallen asleep since is observed again at the next tick. */
    return outcome == OUTCOME_ASLEEP ? 0 : report_assumed(sampler, process, thread);
}

/* The process's next thread to stop, from where the last turn left off. */
static struct thread *next_to_stop(struct sampled_process *process)
{
    struct threads *threads = &process->threads;
    size_t place = threads_place_from(threads, process->turns.next_stop_tid);
    for (size_t i = 0; i < threads->count; i++) {
        struct thread *thread = &threads->items[(place + i) % threads->count];
        if (thread->phase == PHASE_TO_STOP)
            return thread;
    }
    return NULL;
}

static int begin_stops_of(struct sampler *sampler, struct sampled_process *process)
{
    struct turns *turns = &process->turns;
    int err = 0;
    while (turns->stops_left && ptrace_source_has_room(sampler->stopped) && !err) {
        struct thread *thread = next_to_stop(process);
        if (!thread) {
            turns->stops_left = 0; /* the remaining threads are gone */
            break;
        }
        turns->next_stop_tid = thread->tid + 1;
        turns->stops_left--;
        err = begin_stop(sampler, process, thread);
    }
    return err;
}

/* Sets *ret_has_begun to whether any thread was asked to stop. */
static int begin_stops(struct sampler *sampler, bool *ret_has_begun)
{
    size_t count = sampler->process_count, before = ptrace_source_pending(sampler->stopped);
    int err = 0;
    for (size_t i = 0; i < count && !err; i++)
        err = begin_stops_of(sampler, sampler->processes[(sampler->first_process + i) % count]);
    *ret_has_begun = ptrace_source_pending(sampler->stopped) > before;
    return err;
}

static void note_pause(struct sampler *sampler, struct thread *thread,
                       const struct observation *observation)
{
    if (observation->state == THREAD_STOPPED || observation->stop.asked.pc)
        return;
    histogram_add(&sampler->counts.pauses, observation->stop.pause_ns);
    thread_count_once(thread, FACT_STOPPED, &sampler->counts.threads_stopped);
    pause_budget_spend(&thread->pause_budget, observation->stop.pause_ns);
}

static int take_stopped(struct sampler *sampler, struct sampled_process *process,
                        struct thread *thread, struct observation *observation)
{
    struct snapshot_pool *snapshots = channel_snapshots(sampler->channel);
    idle_note_stop(&thread->idle, observation);
    note_pause(sampler, thread, observation);
    if (!sampled_process_is_current(process)) {
        snapshot_pool_give(snapshots, observation->snapshot, false);
        threads_forget_sleep(&process->threads, thread);
        return 0;
    }
    look_note_alive(thread);
    observation->now.at_ns = seen_ns(sampler, process, thread);
    return report_observed(sampler, process, thread, observation);
}

static int take_in(struct sampler *sampler, struct observation *observation, enum outcome outcome)
{
    struct snapshot_pool *snapshots = channel_snapshots(sampler->channel);
    struct sampled_process *process =
        numbers_find(&sampler->numbers, observation->thread, observation->tid);
    struct thread *thread = sampled_process_thread(process, observation->tid);
    if (thread)
        thread_note(thread, EVENT_STOP_OVER);
    if (thread && outcome == OUTCOME_OBSERVED)
        return take_stopped(sampler, process, thread, observation);
    snapshot_pool_give(snapshots, observation->snapshot, false);
    if (thread && outcome == OUTCOME_ASLEEP) {
        note_pause(sampler, thread, observation); /* it was stopped for nothing */
        return 0;
    }
    if (!thread) {
        /* The thread has left the list meanwhile: all its time is already counted. */
        watches_forget(&sampler->watches, observation->thread);
        numbers_take_back(&sampler->numbers, observation->thread);
        return 0;
    }
    return outcome == OUTCOME_GONE
               ? look_note_gone(sampler, process, thread, seen_ns(sampler, process, thread), true)
               : report_assumed(sampler, process, thread);
}

void stops_note_exits(struct sampler *sampler)
{
    struct command *command = &sampler->command;
    pid_t pid;
    int status;
    while (ptrace_source_next_exit(sampler->stopped, &pid, &status)) {
        if (pid != command->pid)
            continue;
        command->status = status;
        atomic_store(&command->has_end, true);
    }
}

static int take_all(struct sampler *sampler)
{
    struct observation observation;
    enum outcome outcome;
    int err = 0;
    while (!err && ptrace_source_collect(sampler->stopped, &observation, &outcome))
        err = take_in(sampler, &observation, outcome);
    stops_note_exits(sampler);
    return err;
}

int stops_take(struct sampler *sampler)
{
    stops_let_go(sampler);
    return take_all(sampler);
}

int stops_continue(struct sampler *sampler)
{
    uint64_t look_until_ns = 0;
    int err = 0;
    while (!err) {
        bool has_begun;
        if (!stops_are_pending(sampler))
            sampler->visits.has_stops = false;
        err = begin_stops(sampler, &has_begun);
        if (err || !stops_are_pending(sampler))
            break;
        ptrace_source_interrupt(sampler->stopped);
        bool has_come = ptrace_source_let_go(sampler->stopped, sampler->stop_heard_ns) > 0;
        if (has_come)
            err = take_all(sampler);
        uint64_t now_ns = monotonic_ns();
        if (has_come || (has_begun && !sampler->visits.has_stops))
            look_until_ns = now_ns + SPIN_NS;
        if (now_ns >= look_until_ns)
            break;
    }
    return err;
}
