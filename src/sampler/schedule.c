#include "sampler/schedule.h"

#define LOOK_MAX_AGE_NS 100000000u
#define LOOK_PART_OF_SLEEP 32
#define LOOKS_PER_TICK 1000 /* at sleeping threads; this many take about a millisecond */

void schedule_unmoved(struct thread_schedule *schedule, const struct reading *proven, pid_t tid,
                      uint64_t period_ns, size_t thread_count)
{
    uint64_t longest = LOOK_MAX_AGE_NS / period_ns;
    uint64_t wait = (schedule->looked_tick - schedule->asleep_since_tick) / LOOK_PART_OF_SLEEP;
    uint64_t shortest = thread_count / LOOKS_PER_TICK;
    wait = wait < shortest ? shortest : wait;
    wait = wait < longest ? wait : longest;
    schedule->is_asleep = true;
    schedule->proven = *proven;
    schedule->next_look_tick = schedule->looked_tick + wait;
    if (wait > 1)
        schedule->next_look_tick -= (schedule->looked_tick + (uint64_t)tid) % wait;
}

uint64_t schedule_moved(struct thread_schedule *schedule, uint64_t last_look_tick)
{
    uint64_t assumed = 0;
    if (schedule->is_asleep && schedule->looked_tick > last_look_tick + 1)
        assumed = schedule->looked_tick - last_look_tick - 1;
    schedule->is_asleep = false;
    schedule->asleep_since_tick = schedule->looked_tick;
    schedule->next_look_tick = 0;
    return assumed;
}
