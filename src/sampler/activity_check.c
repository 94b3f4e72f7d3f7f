#include "sampler/activity_check.h"
#include "base/clock.h"

/* Approximate cost of the kernel's addition. */
#define READING_NS 500
#define READING_PER_THREAD_NS 150
#define READING_PART_OF_TIME 300
/* Minimum time between the beginnings of two sweeps. A look takes about 2 us, so sweeps of very
 * many threads take about 2 % of a CPU. */
#define SWEEP_MIN_AGE_NS 100000000u
#define SWEEP_AGE_PER_THREAD_NS 100000u

void activity_check_read(struct sampled_process *process)
{
    struct activity_check *check = &process->activity_check;
    uint64_t now_ns = monotonic_ns();
    check->is_read =
        !check->has_run_unseen && throttle_allows(&check->reading, now_ns, 0, READING_PART_OF_TIME);
    if (!check->is_read)
        return;
    if (process_cpu_ns(&process->process, &check->cpu_ns))
        check->cpu_ns = UINT64_MAX; /* unknown: any thread may have run */
    check->reading =
        (struct throttle){now_ns, READING_NS + process->threads.count * READING_PER_THREAD_NS};
}

void activity_check_need_not_read(struct sampled_process *process)
{
    process->activity_check.is_read = false;
    process->activity_check.cpu_ns = UINT64_MAX;
}

void activity_check_note_look(struct sampled_process *process, struct thread *thread,
                              const struct reading *now, uint64_t last_look_tick)
{
    if (!now->has_activity || now->activity.counts_ends)
        return;
    uint64_t ran_ns = now->activity.running_ns;
    /* Its running time from before the account was settled is already included. */
    if (last_look_tick >= process->activity_check.settled_tick && ran_ns > thread->ran_ns)
        process->activity_check.seen_ns += ran_ns - thread->ran_ns;
    thread->ran_ns = ran_ns;
}

static void begin_sweep(struct activity_check *check, uint64_t tick, uint64_t sweep_tick)
{
    check->is_sweeping = true;
    check->began_tick = tick;
    check->sweep_tick = sweep_tick;
    check->sweep_began_ns = monotonic_ns();
}

void activity_check_sweep(struct sampled_process *process, uint64_t tick)
{
    begin_sweep(&process->activity_check, tick, tick);
}

/* All threads have been looked at since the sweep began; none was missing, and their number is that
 * of the process, so there are no others. The remaining CPU time was used by threads that are
 * gone. */
static void settle(struct sampled_process *process, uint64_t tick)
{
    struct activity_check *check = &process->activity_check;
    check->settled_tick = tick;
    check->is_sweeping = check->has_run_unseen = false;
    process_cpu_ns(&process->process, &check->seen_ns);
}

void activity_check_judge(struct sampled_process *process, uint64_t tick, bool is_whole)
{
    struct activity_check *check = &process->activity_check;
    const struct listing *listing = &process->listing;
    if (check->is_read) {
        check->has_run_unseen = check->cpu_ns > check->seen_ns;
        if (!check->has_run_unseen)
            check->rest = (struct moment){tick, check->reading.done_ns};
    }
    if (check->is_sweeping && is_whole && !listing->is_wanted && !listing->list.is_partial)
        settle(process, tick);
    if (!check->has_run_unseen || check->is_sweeping)
        return;
    uint64_t age_ns = process->threads.count * (uint64_t)SWEEP_AGE_PER_THREAD_NS;
    age_ns = age_ns > SWEEP_MIN_AGE_NS ? age_ns : SWEEP_MIN_AGE_NS;
    if (monotonic_ns() - check->sweep_began_ns >= age_ns)
        begin_sweep(check, tick, check->rest.tick > check->began_tick ? tick : check->began_tick);
}
