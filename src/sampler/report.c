#include "sampler/report.h"
#include "proc/procfs.h"
#include "sampler/goroutines.h"
#include "sampler/schedule.h"

#include <string.h>

/* A gap of fewer ticks is ignored: a tick may be late. */
#define GAP_TICKS 2
/* After this many reported copies of a thread without a request, the next ones are unlikely to
 * bring one. */
#define UNASKED_MAX 16

void report_begin(struct thread *thread, const struct reading *begin)
{
    thread->life.is_reported = false;
    thread->life.begin = *begin;
    thread->life.reported_ns = begin->at_ns;
    thread->naming.has_news = true;
}

struct reading thread_read_account(struct sampler *sampler, const struct sampled_process *process,
                                   const struct thread *thread)
{
    const struct watch_place place = {process->process.proc_fd, thread->tid,
                                      sampler->watches.keep_fds_below};
    struct watch *watch = watches_get(&sampler->watches, thread->number);
    struct reading reading = {.at_ns = clock_now_ns(&sampler->clock)};
    reading.has_activity = watch && watch_read_activity(&place, watch, &reading.activity) == 0;
    return reading;
}

/* A thread that exits before it is looked at still needs a name. */
static void complete_name(const struct sampled_process *process, struct thread *thread,
                          struct observation *observation)
{
    struct thread_naming *naming = &thread->naming;
    if (!*naming->name)
        procfs_thread_name(process->process.proc_fd, thread->tid, naming->name);
    observation->has_name = naming->has_news && *naming->name;
    if (!observation->has_name)
        return;
    memcpy(observation->name, naming->name, sizeof observation->name);
    naming->has_news = false;
}

/* The time up to which the thread's state is known, reported or not. */
static uint64_t known_ns(const struct thread *thread)
{
    uint64_t known_ns = thread->life.reported_ns;
    uint64_t look_ns = thread->running.now.at_ns, proven_ns = thread->schedule.proven.at_ns;
    known_ns = look_ns > known_ns ? look_ns : known_ns;
    return proven_ns > known_ns ? proven_ns : known_ns;
}

static bool is_news(const struct reading *reading, const struct thread *thread)
{
    return reading->at_ns > thread->life.reported_ns;
}

/* Whether the worker should see a copy soon, so that its requests reach the thread while that is
 * still there. */
static bool is_in_a_hurry(const struct sampled_process *process, struct thread *thread,
                          const struct observation *observation)
{
    if (!observation->snapshot)
        return false;
    if (process->is_in_a_hurry)
        return true;
    if (thread->wants.unasked == UNASKED_MAX)
        return false;
    thread->wants.unasked++;
    return true;
}

static int send(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                struct observation *observation)
{
    static const struct reading none = {0};
    struct thread_life *life = &thread->life;
    observation->thread = thread->number;
    observation->process_id = process->process.pid;
    observation->tid = thread->tid;
    observation->inner_tid = sampled_process_inner_tid(process, thread);
    observation->process = process->number;
    observation->program = process->program ? program_hold(process->program) : NULL;
    observation->tick = thread->schedule.looked_tick;
    observation->round_ns = process->turns.round_ns;
    observation->knows_python = process->python.place.runtime != 0;
    observation->before.begins = !life->is_reported;
    observation->before.begin = life->begin;
    observation->before.asleep =
        is_news(&thread->schedule.proven, thread) ? thread->schedule.proven : none;
    observation->before.asleep_ticks = thread->schedule.proven_ticks;
    observation->before.asleep_tick = thread->schedule.proven_tick;
    observation->before.unseen_ticks = thread->schedule.unseen_ticks;
    observation->before.unseen_tick = thread->schedule.unseen_tick;
    observation->before.look = is_news(&thread->running.now, thread) ? thread->running.now : none;
    complete_name(process, thread, observation);
    const struct message message = {.kind = MESSAGE_OBSERVATION, .observation = *observation};
    int err = channel_send(sampler->channel, &message);
    if (err) {
        observation_release(observation);
        if (observation->snapshot)
            snapshot_pool_give(channel_snapshots(sampler->channel), observation->snapshot, false);
        return err;
    }
    if (is_in_a_hurry(process, thread, observation))
        channel_hurry(sampler->channel);
    life->is_reported = true;
    schedule_reported(&thread->schedule);
    if (observation->now.at_ns > life->reported_ns)
        life->reported_ns = observation->now.at_ns;
    return 0;
}

int report_observed(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                    struct observation *observation)
{
    thread->wants.copy = false;
    thread->wants.is_dumped = true;
    bool is_stopped = observation->evidence == EVIDENCE_STOPPED;
    bool is_visit = is_stopped && observation->stop.visit_ns;
    observation->ticks = is_visit ? 0 : thread->schedule.look_ticks;
    if (is_stopped && !observation->stop.asked.pc && observation->state == THREAD_RUNNING) {
        observation->ticks += thread->wants.spared_ticks;
        thread->wants.spared_ticks = 0;
    }
    return send(sampler, process, thread, observation);
}

/* A sample has no reading, so the last observation that found the thread running provides it. */
int report_sampled(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                   struct observation *observation)
{
    static const struct reading none = {0};
    observation->now = is_news(&thread->running.now, thread) ? thread->running.now : none;
    observation->ticks = 1;
    thread->wants.is_dumped = true;
    observation->sampled.waits_are_seen =
        sampler->off_cpu.record ||
        switches_have(sampler->switches, SWITCHES_ALWAYS, thread->number);
    observation->served = thread->wants.served;
    return send(sampler, process, thread, observation);
}

int report_unmoved(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                   struct observation *observation)
{
    observation->now = thread->schedule.proven;
    return send(sampler, process, thread, observation);
}

int report_woken(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                 struct observation *observation)
{
    observation->snapshot = NULL;
    observation->ticks = thread->schedule.look_ticks;
    return send(sampler, process, thread, observation);
}

int report_assumed(struct sampler *sampler, struct sampled_process *process, struct thread *thread)
{
    struct observation observation = {
        .evidence = EVIDENCE_ASSUMED,
        .state = THREAD_RUNNABLE,
        .wait.syscall_number = -1,
        .now.at_ns = clock_now_ns(&sampler->clock),
    };
    uint64_t period_ns = sampler->clock.ticks.period_ns, known_until_ns = known_ns(thread);
    if (!thread_is_counted(thread) || sampler->options->is_dump ||
        observation.now.at_ns < known_until_ns + GAP_TICKS * period_ns)
        return 0;
    observation.ticks = (observation.now.at_ns - known_until_ns) / period_ns;
    threads_forget_sleep(&process->threads, thread);
    return send(sampler, process, thread, &observation);
}

int report_gone(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                const struct reading *until, bool is_certain)
{
    bool is_asleep = thread->phase == PHASE_ASLEEP;
    struct observation observation = {
        .evidence = EVIDENCE_GONE,
        .state = is_asleep ? THREAD_SLEEPING : THREAD_RUNNABLE,
        .wait.syscall_number = -1,
        .now = *until,
        .end.is_certain = is_certain,
        .end.is_at_end = sampler->clock.end_ns != 0,
        .end.never_moved = sampler->clock.end_ns && !thread->idle.has_moved,
    };
    if (!thread_is_counted(thread))
        return 0;
    int err = send(sampler, process, thread, &observation);
    thread->life.is_reported = false;
    return err;
}

int report_program_ended(struct sampler *sampler, struct sampled_process *process)
{
    const struct message message = {.kind = MESSAGE_PROGRAM_ENDED, .program = process->program};
    if (!process->program)
        return 0;
    int err = goroutines_report(sampler, process);
    if (err)
        return err;
    process->program = NULL;
    process->areas.mem_fd_plus_1 = 0;
    err = process->objects ? 0 : channel_send(sampler->channel, &message);
    if (err || process->objects)
        program_release(message.program);
    /* The collector has its own reference, and reports to the worker when it has sent everything
     * about the program. */
    return err ? err
               : report_to_collector(sampler, (struct notice){.kind = NOTICE_PROGRAM_OVER,
                                                              .process = process->objects});
}

int report_to_collector(struct sampler *sampler, struct notice notice)
{
    bool is_of_process = notice.kind != NOTICE_COPY && notice.kind != NOTICE_FEWER_PAGES &&
                         notice.kind != NOTICE_END;
    if (!sampler->collector || (is_of_process && !notice.process)) {
        program_release(notice.program);
        return 0;
    }
    notice.after = channel_sent(sampler->channel);
    return collector_note(sampler->collector, notice);
}

int report_process_to_collector(struct sampler *sampler, struct sampled_process *process)
{
    process->objects = NULL;
    return sampler->collector
               ? collector_add(sampler->collector, &process->process, process->number,
                               channel_sent(sampler->channel), &process->objects)
               : 0;
}

int report_process(struct sampler *sampler, struct sampled_process *process)
{
    struct message message = {.kind = MESSAGE_PROCESS};
    message.process.number = sampler->processes_begun;
    message.process.pid = process->process.pid;
    if (sampler->counts.ticks_taken)
        message.process.begin_ns = clock_now_ns(&sampler->clock);
    procfs_thread_name(process->process.proc_fd, process->process.pid, message.process.name);
    int err = channel_send(sampler->channel, &message);
    if (err)
        return err;
    process->number = sampler->processes_begun++;
    return report_process_to_collector(sampler, process);
}
