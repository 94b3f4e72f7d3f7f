#include "sampler/visits.h"
#include "base/clock.h"
#include "base/random.h"
#include "sampler/look.h"
#include "sampler/numbers.h"
#include "sampler/report.h"
#include "sampler/stops.h"
#include "sampler/taken_cpu.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Within this time the sampling thread has moved to a CPU and is asleep, before it wakes up
 * there. */
#define COMING_NS 60000
/* No visit this shortly before a tick: the stop would make the tick late. */
#define BEFORE_TICK_NS 150000
/* How long a visit may take, and the most visits between two ticks. */
#define VISIT_NS 250000
#define VISITS_MAX 8
/* If another thread ran there, this many are tried at most. */
#define LOOKS_MAX 32
#define SLICE_NS 100000

/* From linux/sched.h and linux/sched/types.h: glibc 2.36 does not declare sched_setattr(2). */
#ifndef SCHED_FLAG_RESET_ON_FORK
#define SCHED_FLAG_RESET_ON_FORK 0x01
#endif
struct sched_attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

/* Whether the thread lives, and is neither asleep for long nor in a stop. */
static bool can_be_visited(const struct sampled_process *process, const struct thread *thread)
{
    return process->program && !process->has_exited && thread_is_counted(thread) &&
           thread->phase == PHASE_AWAKE;
}

/* Since Linux 6.12, a thread with a short slice gets its CPU immediately when it wakes up
 * (PREEMPT_SHORT in the kernel's kernel/sched/features.h). 0: the default slice. Keeps
 * SCHED_RESET_ON_FORK, which stops may have set, because clearing it requires a capability. */
static void set_slice(uint64_t slice_ns)
{
    int policy = sched_getscheduler(0);
    struct sched_attributes attributes = {
        .size = sizeof attributes,
        .flags = policy & SCHED_RESET_ON_FORK ? SCHED_FLAG_RESET_ON_FORK : 0,
        .nice = getpriority(PRIO_PROCESS, 0),
        .runtime_ns = slice_ns};
    if ((policy & ~SCHED_RESET_ON_FORK) == SCHED_OTHER)
        syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static bool go_to(struct visits *visits, int cpu)
{
    cpu_set_t there;
    CPU_ZERO(&there);
    CPU_SET(cpu, &there);
    visits->is_away = sched_setaffinity(0, sizeof there, &there) == 0;
    if (visits->is_away)
        set_slice(SLICE_NS);
    return visits->is_away;
}

static void go_home(struct visits *visits)
{
    if (visits->is_away) {
        sched_setaffinity(0, sizeof visits->home, &visits->home);
        set_slice(0);
    }
    visits->is_away = false;
}

static struct thread *find(const struct sampler *sampler, const struct wanted_visit *wanted,
                           struct sampled_process **ret_process)
{
    *ret_process = numbers_find(&sampler->numbers, wanted->thread, wanted->tid);
    return sampled_process_thread(*ret_process, wanted->tid);
}

/* Goes to the CPU where the thread ran last. */
static bool go_to_thread(struct sampler *sampler, const struct wanted_visit *wanted)
{
    struct visits *visits = &sampler->visits;
    struct sampled_process *process;
    const struct thread *thread = find(sampler, wanted, &process);
    struct proc_stat stat;
    if (!thread || !can_be_visited(process, thread) ||
        procfs_thread_stat(process->process.proc_fd, thread->tid, &stat) ||
        !taken_cpu_may_go_to(visits, stat.cpu) || !go_to(visits, stat.cpu))
        return false;
    visits->cpu = stat.cpu;
    visits->next = *wanted;
    return true;
}

/* Chooses the next thread to visit, and goes to its CPU. */
static bool go_to_next(struct sampler *sampler)
{
    struct visits *visits = &sampler->visits;
    while (visits->wanted_count) {
        size_t place =
            random_below((uint32_t)visits->wanted_count, sampler->clock.ticks.seed, monotonic_ns());
        const struct wanted_visit wanted = visits->wanted[place];
        visits->wanted[place] = visits->wanted[--visits->wanted_count];
        if (go_to_thread(sampler, &wanted))
            return true;
    }
    return false;
}

/* A random time in this thread's part of the time until the next tick. */
static uint64_t moment(struct sampler *sampler, uint64_t now_ns, uint64_t time_ns, uint64_t visits)
{
    uint64_t part_ns = time_ns / visits;
    uint32_t free_ns = part_ns > COMING_NS ? (uint32_t)(part_ns - COMING_NS) : 1;
    return now_ns + COMING_NS + random_below(free_ns, sampler->clock.ticks.seed, now_ns);
}

uint64_t visits_plan(struct sampler *sampler, uint64_t tick_ns)
{
    struct visits *visits = &sampler->visits;
    if (visits->at_ns)
        return visits->at_ns;
    uint64_t now_ns = monotonic_ns();
    uint64_t time_ns = tick_ns > now_ns + BEFORE_TICK_NS ? tick_ns - now_ns - BEFORE_TICK_NS : 0;
    uint64_t room = time_ns / VISIT_NS;
    uint64_t left = room < visits->left ? room : visits->left;
    left = left < visits->wanted_count ? left : visits->wanted_count;
    if (!left || !go_to_next(sampler)) {
        go_home(visits);
        return UINT64_MAX;
    }
    visits->left--;
    visits->at_ns = moment(sampler, monotonic_ns(), time_ns, left);
    return visits->at_ns;
}

/* Whether the thread lost to us the CPU to which we have moved. */
static bool is_found(struct sampler *sampler, const struct sampled_process *process,
                     const struct thread *thread)
{
    struct proc_stat stat;
    return can_be_visited(process, thread) &&
           !procfs_thread_stat(process->process.proc_fd, thread->tid, &stat) && stat.state == 'R' &&
           stat.cpu == sampler->visits.cpu && !taken_cpu_had_left(sampler, process, thread);
}

/* Requests a stop of the thread, if it is found. */
static bool stop_if_found(struct sampler *sampler, const struct wanted_visit *wanted,
                          uint64_t at_ns)
{
    struct sampled_process *process;
    struct thread *thread = find(sampler, wanted, &process);
    if (!thread || !is_found(sampler, process, thread))
        return false;
    const struct reading now = thread_read_account(sampler, process, thread);
    if (!reading_has_times(&now))
        return false;
    thread->visits.is_here = true;
    look_at_visit(sampler, process, thread, &now, at_ns);
    return true;
}

/* If the planned thread does not run there, another one may. */
void visits_take(struct sampler *sampler, uint64_t now_ns)
{
    struct visits *visits = &sampler->visits;
    uint64_t at_ns = visits->at_ns;
    if (!at_ns || now_ns < at_ns)
        return;
    visits->at_ns = 0;
    /* We were awake then, so we took the CPU from no thread. */
    if (sampler->clock.awake_ns < at_ns)
        return;
    bool is_over = stop_if_found(sampler, &visits->next, at_ns);
    for (size_t i = 0; i < visits->wanted_count && i < LOOKS_MAX && !is_over; i++)
        is_over = stop_if_found(sampler, &visits->wanted[i], at_ns);
}

void visits_end(struct sampler *sampler)
{
    struct visits *visits = &sampler->visits;
    go_home(visits);
    visits->at_ns = 0;
    visits->wanted_count = visits->wanted_more = 0;
    visits->left = VISITS_MAX;
}
