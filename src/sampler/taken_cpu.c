#include "sampler/taken_cpu.h"
#include "base/clock.h"
#include "base/random.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <unistd.h>

/* Whether the thread is stopped at visits while it runs: the kernel does not sample it. */
static bool are_made(const struct sampler *sampler, const struct thread *thread)
{
    return sampler->visits.is_possible && !sampler->options->is_dump && !sampler->clock.end_ns &&
           (!sampler->kernel.source || thread->kernel.lacks_python);
}

bool taken_cpu_may_go_to(const struct visits *visits, int cpu)
{
    return cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &visits->home);
}

void taken_cpu_begin(struct sampler *sampler)
{
    struct visits *visits = &sampler->visits;
#ifndef FGPROF_WITHOUT_VISITS
    visits->is_possible = sched_getaffinity(0, sizeof visits->home, &visits->home) == 0;
    visits->proc_fd_plus_1 = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC) + 1;
#endif
}

void taken_cpu_free(struct visits *visits)
{
    watch_close(&visits->own);
    if (visits->proc_fd_plus_1)
        close(visits->proc_fd_plus_1 - 1);
    visits->proc_fd_plus_1 = 0;
}

void taken_cpu_note_awake(struct sampler *sampler)
{
    struct visits *visits = &sampler->visits;
    const struct watch_place own = {visits->proc_fd_plus_1 - 1, gettid(), INT_MAX};
    struct last_run last_run;
    bool matters = visits->is_possible && (!sampler->kernel.source || visits->are_made);
    bool is_known = matters && watch_read_last_run(&own, &visits->own, &last_run);
    visits->came_ns = is_known ? last_run.at_ns : 0;
}

bool taken_cpu_had_left(struct sampler *sampler, const struct sampled_process *process,
                        const struct thread *thread)
{
    const struct watch_place place = {process->process.proc_fd, thread->tid,
                                      sampler->watches.keep_fds_below};
    struct watch *watch = watches_get(&sampler->watches, thread->number);
    struct last_run last_run;
    return sampler->visits.came_ns && watch && watch_read_last_run(&place, watch, &last_run) &&
           last_run_is_before(&last_run, sampler->visits.came_ns);
}

/* If too many threads want a visit, each has the same chance. */
static void want_visit(struct sampler *sampler, const struct thread *thread)
{
    struct visits *visits = &sampler->visits;
    size_t place = visits->wanted_count;
    if (place == VISITS_WANTED_MAX)
        place = random_below(++visits->wanted_more + VISITS_WANTED_MAX, sampler->clock.ticks.seed,
                             monotonic_ns());
    else
        visits->wanted_count++;
    if (place < VISITS_WANTED_MAX)
        visits->wanted[place] = (struct wanted_visit){thread->number, thread->tid};
}

/* We would not get the CPU of a thread with real-time priority until that thread leaves it. */
static bool has_priority(const struct proc_stat *stat)
{
    return stat->policy == SCHED_FIFO || stat->policy == SCHED_RR || stat->policy == SCHED_DEADLINE;
}

void taken_cpu_note_look(struct sampler *sampler, const struct sampled_process *process,
                         struct thread *thread, enum outcome outcome, const struct reading *now)
{
    struct thread_visits *own = &thread->visits;
    bool has_times = reading_has_times(now);
    bool has_run = outcome == OUTCOME_RUNNING ||
                   (has_times && thread->ran_ns && now->activity.running_ns > thread->ran_ns);
    struct proc_stat stat;
    own->is_here = own->is_out_of_reach = false;
    if (!are_made(sampler, thread) || !has_run || outcome == OUTCOME_GONE)
        return;
    sampler->visits.are_made = true;
    own->is_out_of_reach = !has_times ||
                           procfs_thread_stat(process->process.proc_fd, thread->tid, &stat) ||
                           has_priority(&stat) || !taken_cpu_may_go_to(&sampler->visits, stat.cpu);
    if (own->is_out_of_reach)
        return;
    own->is_here = stat.cpu == sched_getcpu();
    want_visit(sampler, thread);
}

bool taken_cpu_leave_to_look(struct sampler *sampler, const struct sampled_process *process,
                             const struct thread *thread)
{
    return !are_made(sampler, thread) || thread->visits.is_out_of_reach ||
           (thread->visits.is_here && taken_cpu_had_left(sampler, process, thread));
}
