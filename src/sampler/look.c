#include "sampler/look.h"
#include "observe/proc_source.h"
#include "sampler/activity_check.h"
#include "sampler/idle.h"
#include "sampler/kernel_samples.h"
#include "sampler/listing.h"
#include "sampler/missed_sleeps.h"
#include "sampler/naming.h"
#include "sampler/off_cpu_samples.h"
#include "sampler/otel_context.h"
#include "sampler/report.h"
#include "sampler/schedule.h"
#include "sampler/short_sleeps.h"
#include "sampler/subject.h"
#include "sampler/switch_events.h"
#include "sampler/taken_cpu.h"

#include <errno.h>

/* How often a long sleep is reported; with very many threads, a thousand reports a second in all.
 */
#define UNMOVED_REPORTED_EACH_NS 1000000000u
#define UNMOVED_REPORTED_PER_S 1000

#define FOR_VISITS_NS 300000

/* The snapshot for the next look to fill. NULL if the worker is behind. */
static struct snapshot *spare_for(struct sampler *sampler, const struct thread_wants *wants)
{
    struct snapshot_pool *snapshots = channel_snapshots(sampler->channel);
    const struct stack_place *other = &wants->other_stack;
    struct snapshot *spare = sampler->spare;
    size_t other_bytes = other->address ? other->bytes : 0;
    if (spare && spare->stack.capacity >= wants->stack_limit &&
        spare->other_stack.capacity >= other_bytes)
        return spare;
    if (spare)
        snapshot_pool_give(snapshots, spare, false);
    sampler->spare = snapshot_pool_take(snapshots, wants->stack_limit, other);
    return sampler->spare;
}

void look_ask_for_stop(struct sampled_process *process, struct thread *thread)
{
    process->turns.stops_left += !thread_is_in_a_stop(thread);
    thread_note(thread, EVENT_STOP_WANTED);
}

int look_note_gone(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                   uint64_t until_ns, bool is_certain)
{
    struct thread_life *life = &thread->life;
    const struct reading until = {.at_ns = until_ns};
    process->listing.is_wanted = process->listing.is_wanted || !life->has_exited;
    int err = report_gone(sampler, process, thread, &until, is_certain);
    uint64_t reported_ns = life->reported_ns > until_ns ? life->reported_ns : until_ns;
    life->gone_ns = life->has_exited ? clock_now_ns(&sampler->clock) : reported_ns;
    life->has_exited = true;
    return err;
}

/* A leader that exited while other threads ran reappears when one of them executes a program: that
 * thread becomes the leader. */
void look_note_alive(struct thread *thread)
{
    if (!thread->life.has_exited)
        return;
    const struct reading begin = {.at_ns = thread->life.gone_ns};
    thread->life.has_exited = false;
    report_begin(thread, &begin);
}

/* A thread's counted time ends with a look at it, some time after it was listed. For a new thread
 * the same amount is subtracted from its beginning, so that no time is counted twice. */
static void note_first_look(const struct sampler *sampler, const struct sampled_process *process,
                            struct thread *thread)
{
    uint64_t now_ns = clock_now_ns(&sampler->clock), listed_ns = process->listing.listed.done_ns;
    struct thread_life *life = &thread->life;
    if (life->is_new && !life->is_reported && now_ns > listed_ns) {
        life->begin.at_ns += now_ns - listed_ns;
        life->reported_ns = life->begin.at_ns;
    }
    life->is_new = false;
}

static int take_unmoved(struct sampler *sampler, struct sampled_process *process,
                        struct thread *thread, struct observation *observation)
{
    const struct reading *now = &observation->now;
    schedule_unmoved(thread, now, process->threads.count);
    uint64_t all_ns = process->threads.count * (1000000000u / UNMOVED_REPORTED_PER_S);
    uint64_t each_ns = all_ns > UNMOVED_REPORTED_EACH_NS ? all_ns : UNMOVED_REPORTED_EACH_NS;
    bool is_old = now->at_ns >= thread->life.reported_ns + each_ns;
    if (!is_old && !sampler->looks_at_all && !observation->wait.has_call)
        return 0;
    observation->snapshot = NULL;
    return report_unmoved(sampler, process, thread, observation);
}

/* Returns false if the process runs another program now: its stack does not match the mappings that
 * are known. Then the thread is looked at again once the round has found the new program, as if it
 * had not been looked at since `last_look_tick`. */
static bool accept_copy(struct sampled_process *process, struct thread *thread,
                        uint64_t last_look_tick, const struct observation *observation)
{
    if (!sampled_process_is_current(process)) {
        threads_forget_sleep(&process->threads, thread);
        thread->schedule.looked_tick = last_look_tick;
        return false;
    }
    look_note_alive(thread);
    thread->call = (struct thread_call){.target = observation->wait.call};
    return true;
}

static int take_observed(struct sampler *sampler, struct sampled_process *process,
                         struct thread *thread, uint64_t last_look_tick,
                         struct observation *observation)
{
    if (!accept_copy(process, thread, last_look_tick, observation))
        return 0;
    if (observation->evidence == EVIDENCE_ASLEEP)
        switch_events_complete(sampler, thread, &observation->now,
                               &observation->snapshot->registers);
    sampler->spare = NULL;
    return report_observed(sampler, process, thread, observation);
}

static void note_running(struct sampler *sampler, struct sampled_process *process,
                         struct thread *thread, const struct reading *now, uint64_t visit_ns)
{
    thread->running = (struct thread_running_look){.now = *now,
                                                   .awake_ns = sampler->clock.awake_ns,
                                                   .tick = thread->schedule.looked_tick,
                                                   .visit_ns = visit_ns};
    thread->wants.asleep.pc = 0;
    otel_context_note_running(sampler, process, thread);
}

/* Requests a stop of a running thread, unless that would cost the thread too much. */
static bool ask_for_affordable_stop(struct sampler *sampler, struct sampled_process *process,
                                    struct thread *thread, const struct reading *now,
                                    int64_t reserve_ns)
{
    uint64_t running_ns = reading_has_times(now) ? now->activity.running_ns : now->at_ns;
    bool is_affordable = pause_budget_allows(&thread->pause_budget, running_ns,
                                             sampler->options->max_pause_percent, reserve_ns);
    if (is_affordable)
        look_ask_for_stop(process, thread);
    else
        sampler->counts.samples_thinned++;
    return is_affordable;
}

void look_at_visit(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                   const struct reading *now, uint64_t visit_ns)
{
    note_running(sampler, process, thread, now, visit_ns);
    thread->visits.was_found = ask_for_affordable_stop(sampler, process, thread, now, 0);
}

/* A thread that often waits for our CPU must not spend its whole pause budget there: visits need
 * some of it, to show where the thread runs. */
static bool stop_for_tick(struct sampler *sampler, struct sampled_process *process,
                          struct thread *thread, const struct reading *now)
{
    struct thread_visits *visits = &thread->visits;
    int64_t reserve_ns = visits->is_here && !visits->was_found ? FOR_VISITS_NS : 0;
    bool is_asked = ask_for_affordable_stop(sampler, process, thread, now, reserve_ns);
    visits->was_found = visits->was_found && !is_asked;
    return is_asked;
}

/* If the thread is not stopped, its next sample represents this look too. `may_stop`: false if
 * it is known to be asleep again. */
static void take_running(struct sampler *sampler, struct sampled_process *process,
                         struct thread *thread, const struct reading *now, bool may_stop)
{
    note_running(sampler, process, thread, now, 0);
    if (kernel_samples_cover(sampler, process, thread,
                             reading_has_times(now) ? now->activity.running_ns : 0))
        return;
    if (!may_stop || !taken_cpu_leave_to_look(sampler, process, thread) ||
        !stop_for_tick(sampler, process, thread, now))
        thread->wants.spared_ticks += thread->schedule.look_ticks;
}

/* Time after the recording's end does not count. */
static void clip(const struct clock *clock, struct reading *reading)
{
    if (clock->end_ns && reading->at_ns > clock->end_ns)
        reading->at_ns = clock->end_ns;
}

static void note_files(struct sampler *sampler, const struct thread *thread)
{
    const struct watch *watch = watches_get(&sampler->watches, thread->number);
    if (!watch || !watch->schedstat.fd_plus_1)
        sampler->counts.lacks_files = true;
}

/* A look begins at this tick. Returns the tick of the previous look. */
static uint64_t begin_look(struct sampler *sampler, struct sampled_process *process,
                           struct thread *thread, uint64_t tick, struct observation *observation,
                           enum outcome outcome)
{
    uint64_t last_look_tick = schedule_look(&thread->schedule, tick);
    clip(&sampler->clock, &observation->now);
    if (outcome != OUTCOME_GONE) {
        note_files(sampler, thread);
        note_first_look(sampler, process, thread);
    }
    taken_cpu_note_look(sampler, process, thread, outcome, &observation->now);
    activity_check_note_look(process, thread, &observation->now, last_look_tick);
    idle_note_look(&thread->idle, outcome, observation);
    return last_look_tick;
}

/* The tick after which a look's result is counted. The first look represents its own tick; a
 * repeated look represents the same ticks as before. */
static uint64_t known_tick(const struct thread_schedule *schedule, uint64_t tick)
{
    if (!schedule->looked_tick)
        return tick - 1;
    return schedule->looked_tick < tick ? schedule->looked_tick : tick - schedule->look_ticks;
}

/* The record knows where the thread was off its CPU, and since when. */
static int take_off_cpu(struct sampler *sampler, struct sampled_process *process,
                        struct thread *thread, uint64_t tick, enum outcome outcome,
                        struct observation *observation)
{
    struct thread_schedule *schedule = &thread->schedule;
    uint64_t since_tick = schedule->asleep_since_tick;
    const struct off_cpu_ticks ticks =
        off_cpu_ticks_since(&sampler->clock.ticks, known_tick(schedule, tick), tick, observation);
    uint64_t last_look_tick = begin_look(sampler, process, thread, tick, observation, outcome);
    off_cpu_samples_find_cpu_user(sampler, observation, tick, ticks.runnable);
    thread->is_awake = ticks.runnable > 0;
    schedule->look_ticks = ticks.asleep;
    if (outcome == OUTCOME_UNMOVED)
        return take_unmoved(sampler, process, thread, observation);
    if (outcome == OUTCOME_WOKEN) {
        struct reading until = observation->now;
        until.at_ns = observation->record.woken_ns;
        schedule_slept_until(schedule, &until, ticks.asleep, ticks.runnable);
    }
    thread_note(thread, EVENT_MOVED);
    schedule->next_look_tick = 0;
    if (thread->idle.has_moved || outcome != OUTCOME_OBSERVED)
        since_tick = tick;
    schedule->asleep_since_tick = since_tick;
    if (outcome == OUTCOME_WOKEN)
        return report_woken(sampler, process, thread, observation);
    if (!accept_copy(process, thread, last_look_tick, observation))
        return 0;
    sampler->spare = NULL;
    return off_cpu_samples_report(sampler, process, thread, observation, ticks);
}

static int take_found(struct sampler *sampler, struct sampled_process *process,
                      struct thread *thread, uint64_t tick, enum outcome outcome,
                      struct observation *observation)
{
    const struct reading *now = &observation->now;
    uint64_t since_tick = thread->schedule.asleep_since_tick;
    uint64_t last_look_tick = begin_look(sampler, process, thread, tick, observation, outcome);
    if (observation->asleep.was_asleep && sampler->kernel.source && !sampler->off_cpu.record)
        missed_sleeps_note(&thread->missed_sleeps, observation, thread->schedule.look_ticks);
    if (outcome == OUTCOME_OBSERVED && !observation->record.returned_ns)
        observation->missed_ticks = missed_sleeps_take(&thread->missed_sleeps, observation);
    bool ran = outcome == OUTCOME_RUNNING || outcome == OUTCOME_ASLEEP;
    bool has_moved = outcome == OUTCOME_OBSERVED || ran;
    if (outcome != OUTCOME_REFUSED)
        thread->is_awake = ran || outcome == OUTCOME_WOKEN;
    if (has_moved)
        switch_events_note_look(sampler, process, thread, now);
    if (has_moved || outcome == OUTCOME_WOKEN)
        sampler->counts.samples_assumed +=
            schedule_moved(thread, last_look_tick, &process->activity_check.rest);
    /* The thread is still in the sleep in which it was first read: this is the first copy of that
     * sleep, or another one. */
    if (outcome == OUTCOME_OBSERVED && !thread->idle.has_moved)
        thread->schedule.asleep_since_tick = since_tick;
    switch (outcome) {
    case OUTCOME_UNMOVED:
        short_sleeps_note_unmoved(sampler, thread);
        return take_unmoved(sampler, process, thread, observation);
    case OUTCOME_WOKEN:
        return report_woken(sampler, process, thread, observation);
    case OUTCOME_OBSERVED:
        return take_observed(sampler, process, thread, last_look_tick, observation);
    case OUTCOME_RUNNING:
        if (switch_events_observe(sampler, process, thread, now, observation))
            return take_observed(sampler, process, thread, last_look_tick, observation);
        look_note_alive(thread); /* a leader that was replaced by a thread that executes */
        take_running(sampler, process, thread, now, true);
        return 0;
    case OUTCOME_ASLEEP:
        take_running(sampler, process, thread, now, false);
        return 0;
    case OUTCOME_GONE:
        return look_note_gone(sampler, process, thread, listing_gone_ns(sampler, process), false);
    default:
        return report_assumed(sampler, process, thread);
    }
}

static int look_now(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                    uint64_t tick)
{
    struct observation observation = {.snapshot = sampler->spare, .served = thread->wants.served};
    enum outcome outcome;
    snapshot_forget(sampler->spare);
    int err = off_cpu_samples_observe(sampler, process, thread, tick, &observation, &outcome);
    if (err || outcome == OUTCOME_PENDING)
        return err;
    if (observation.record.departed_ns && outcome != OUTCOME_GONE)
        return take_off_cpu(sampler, process, thread, tick, outcome, &observation);
    if (outcome == OUTCOME_REFUSED) {
        const struct subject subject = subject_of(sampler, process, thread);
        outcome = proc_source_observe(&sampler->watches, &subject, &observation);
        outcome =
            short_sleeps_observe(sampler, process, thread, tick, &subject, outcome, &observation);
    }
    return take_found(sampler, process, thread, tick, outcome, &observation);
}

int look_at(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
            uint64_t tick)
{
    int err = naming_again(sampler, process, thread, tick);
    if (err || thread->phase == PHASE_UNWANTED)
        return err;
    if (!spare_for(sampler, &thread->wants))
        return -EAGAIN;
    return look_now(sampler, process, thread, tick);
}
