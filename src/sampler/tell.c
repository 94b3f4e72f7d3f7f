#include "sampler/tell.h"
#include "proc/procfs.h"

#include <string.h>

/* A gap of fewer ticks is none: a tick may come late. */
#define GAP_TICKS 2

void tell_begin(struct thread *thread, const struct reading *begin)
{
    thread->life.is_told = false;
    thread->life.begin = *begin;
    thread->life.told_ns = begin->at_ns;
    thread->naming.has_news = true;
}

struct reading tell_read(struct sampler *sampler, const struct sampled_process *process,
                         const struct thread *thread)
{
    const struct watch_place place = {process->process.proc_fd, thread->tid,
                                      sampler->watches.keep_fds_below};
    struct watch *watch = watches_get(&sampler->watches, thread->number);
    struct reading reading = {.at_ns = clock_now_ns(&sampler->clock)};
    reading.has_activity = watch && watch_read_activity(&place, watch, &reading.activity) == 0;
    return reading;
}

/* A thread that goes before it is looked at still needs a name. */
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

/* Up to when it is known what the thread did, told or not. */
static uint64_t known_ns(const struct thread *thread)
{
    uint64_t known_ns = thread->life.told_ns;
    uint64_t look_ns = thread->wants.look.at_ns, proven_ns = thread->schedule.proven.at_ns;
    known_ns = look_ns > known_ns ? look_ns : known_ns;
    return proven_ns > known_ns ? proven_ns : known_ns;
}

static bool is_news(const struct reading *reading, const struct thread *thread)
{
    return reading->at_ns > thread->life.told_ns;
}

/* For how many ticks what is told stands. */
static uint64_t ticks_since_told(const struct thread *thread)
{
    const struct thread_schedule *schedule = &thread->schedule;
    uint64_t ticks = schedule->looked_tick - schedule->told_tick;
    return schedule->told_tick && ticks ? ticks : 1;
}

static int send(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                struct observation *observation)
{
    static const struct reading none = {0};
    struct thread_life *life = &thread->life;
    observation->thread = thread->number;
    observation->process_id = process->process.pid;
    observation->tid = thread->tid;
    observation->process = process->number;
    observation->program = process->program ? program_hold(process->program) : NULL;
    observation->tick = thread->schedule.looked_tick;
    observation->round_ns = process->turns.round_ns;
    observation->begins = !life->is_told;
    observation->begin = life->begin;
    observation->asleep =
        is_news(&thread->schedule.proven, thread) ? thread->schedule.proven : none;
    observation->asleep_ticks = ticks_since_told(thread);
    observation->look = is_news(&thread->wants.look, thread) ? thread->wants.look : none;
    complete_name(process, thread, observation);
    const struct message message = {.kind = MESSAGE_OBSERVATION, .observation = *observation};
    int err = channel_send(sampler->channel, &message);
    if (err) {
        observation_release(observation);
        if (observation->snapshot)
            snapshots_give(channel_snapshots(sampler->channel), observation->snapshot, false);
        return err;
    }
    life->is_told = true;
    thread->schedule.told_tick = thread->schedule.looked_tick;
    if (observation->now.at_ns > life->told_ns)
        life->told_ns = observation->now.at_ns;
    return 0;
}

int tell_observed(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                  struct observation *observation)
{
    thread->wants.copy = false;
    thread->wants.is_dumped = true;
    observation->ticks = ticks_since_told(thread);
    return send(sampler, process, thread, observation);
}

int tell_unmoved(struct sampler *sampler, struct sampled_process *process, struct thread *thread)
{
    struct observation observation = {
        .evidence = EVIDENCE_UNMOVED,
        .state = THREAD_SLEEPING,
        .syscall_number = -1,
        .now = thread->schedule.proven,
    };
    return send(sampler, process, thread, &observation);
}

int tell_assumed(struct sampler *sampler, struct sampled_process *process, struct thread *thread)
{
    struct observation observation = {
        .evidence = EVIDENCE_ASSUMED,
        .state = THREAD_RUNNABLE,
        .syscall_number = -1,
        .now.at_ns = clock_now_ns(&sampler->clock),
        .ticks = ticks_since_told(thread),
    };
    uint64_t gap_ns = GAP_TICKS * sampler->clock.period_ns;
    if (!thread_is_counted(thread) || sampler->options->is_dump ||
        observation.now.at_ns < known_ns(thread) + gap_ns)
        return 0;
    thread_forget_sleep(thread);
    return send(sampler, process, thread, &observation);
}

int tell_gone(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
              const struct reading *until, bool is_certain)
{
    bool is_asleep = thread->schedule.is_asleep;
    struct observation observation = {
        .evidence = EVIDENCE_GONE,
        .state = is_asleep ? THREAD_SLEEPING : THREAD_RUNNABLE,
        .syscall_number = -1,
        .now = *until,
        .is_certain = is_certain,
        .is_at_end = sampler->clock.end_ns != 0,
        .never_moved = sampler->clock.end_ns && !thread->movement.has_moved,
    };
    if (!thread_is_counted(thread))
        return 0;
    int err = send(sampler, process, thread, &observation);
    thread->life.is_told = false;
    return err;
}

int tell_program_ended(struct sampler *sampler, struct sampled_process *process)
{
    if (!process->program)
        return 0;
    const struct message message = {.kind = MESSAGE_PROGRAM_ENDED, .program = process->program};
    int err = channel_send(sampler->channel, &message);
    if (err)
        program_release(process->program);
    process->program = NULL;
    return err;
}

int tell_process(struct sampler *sampler, struct sampled_process *process)
{
    struct message message = {.kind = MESSAGE_PROCESS};
    message.process.number = sampler->processes_begun;
    message.process.pid = process->process.pid;
    procfs_thread_name(process->process.proc_fd, process->process.pid, message.process.name);
    int err = channel_send(sampler->channel, &message);
    if (!err)
        process->number = sampler->processes_begun++;
    return err;
}
