#include "sampler/stir.h"
#include "base/clock.h"

/* What it takes the kernel to add up, about. */
#define READING_NS 500
#define READING_PER_THREAD_NS 150
#define READING_PART_OF_TIME 300
/* Between the beginnings of two sweeps; a look takes about 2 us, so that sweeps of very many
 * threads take about 2 % of a CPU. */
#define SWEEP_MIN_AGE_NS 100000000u
#define SWEEP_AGE_PER_THREAD_NS 100000u

void stir_read(struct sampled_process *process)
{
    struct stir *stir = &process->stir;
    uint64_t now_ns = monotonic_ns();
    stir->is_read =
        !stir->has_stirred && throttle_allows(&stir->reading, now_ns, 0, READING_PART_OF_TIME);
    if (!stir->is_read)
        return;
    if (process_cpu_ns(&process->process, &stir->cpu_ns))
        stir->cpu_ns = UINT64_MAX; /* unknown: it may always have stirred */
    stir->reading =
        (struct throttle){now_ns, READING_NS + process->threads.count * READING_PER_THREAD_NS};
}

void stir_need_not_read(struct sampled_process *process)
{
    process->stir.is_read = false;
    process->stir.cpu_ns = UINT64_MAX;
}

void stir_note_look(struct sampled_process *process, struct thread *thread,
                    const struct reading *now, uint64_t last_look_tick)
{
    struct thread_schedule *schedule = &thread->schedule;
    if (!now->has_activity || now->activity.counts_ends)
        return;
    uint64_t ran_ns = now->activity.running_ns;
    /* What it ran before the account was settled is in that already. */
    if (last_look_tick >= process->stir.settled_tick && ran_ns > schedule->ran_ns)
        process->stir.seen_ns += ran_ns - schedule->ran_ns;
    schedule->ran_ns = ran_ns;
}

static void begin_sweep(struct stir *stir, uint64_t tick, uint64_t sweep_tick)
{
    stir->is_sweeping = true;
    stir->began_tick = tick;
    stir->sweep_tick = sweep_tick;
    stir->sweep_began_ns = monotonic_ns();
}

void stir_sweep(struct sampled_process *process, uint64_t tick)
{
    begin_sweep(&process->stir, tick, tick);
}

/* All threads have been looked at since the sweep began; none was missing, and they are as many as
 * there are, so there is no other. What is left was used by threads that have gone. */
static void settle(struct sampled_process *process, uint64_t tick)
{
    struct stir *stir = &process->stir;
    stir->settled_tick = tick;
    stir->is_sweeping = stir->has_stirred = false;
    process_cpu_ns(&process->process, &stir->seen_ns);
}

void stir_judge(struct sampled_process *process, uint64_t tick, bool is_whole)
{
    struct stir *stir = &process->stir;
    const struct listing *listing = &process->listing;
    if (stir->is_read) {
        stir->has_stirred = stir->cpu_ns > stir->seen_ns;
        if (!stir->has_stirred)
            stir->rest = (struct moment){tick, stir->reading.done_ns};
    }
    if (stir->is_sweeping && is_whole && !listing->is_wanted && !listing->list.is_partial)
        settle(process, tick);
    if (!stir->has_stirred || stir->is_sweeping)
        return;
    uint64_t age_ns = process->threads.count * (uint64_t)SWEEP_AGE_PER_THREAD_NS;
    age_ns = age_ns > SWEEP_MIN_AGE_NS ? age_ns : SWEEP_MIN_AGE_NS;
    if (monotonic_ns() - stir->sweep_began_ns >= age_ns)
        begin_sweep(stir, tick, stir->rest.tick > stir->began_tick ? tick : stir->began_tick);
}
