#include "sampler/schedule.h"

#define LOOK_PART_OF_SLEEP 32
/* More threads than this take turns. A look takes 2 to 3 us if the kernel's data of the thread has
 * left the caches since the last one: at 99 Hz, 32 looks a tick are 1 % of a CPU. */
#define THREADS_WITHOUT_TURNS 250
#define LOOKS_PER_TICK 32
/* But a thread is always looked at after this part of its sleep at the latest. */
#define TURN_PART_OF_SLEEP 2
/* Looks at threads that fell asleep together are spread: each is earlier by up to this part of the
 * wait. */
#define SPREAD_PART_OF_WAIT 4

uint64_t schedule_look(struct thread_schedule *schedule, uint64_t tick)
{
    uint64_t last_look_tick = schedule->looked_tick;
    schedule->looked_tick = tick;
    if (!last_look_tick)
        schedule->look_ticks = 1;
    else if (tick > last_look_tick)
        schedule->look_ticks = tick - last_look_tick;
    return last_look_tick;
}

void schedule_unmoved(struct thread *thread, const struct reading *proven, size_t thread_count)
{
    struct thread_schedule *schedule = &thread->schedule;
    uint64_t slept = schedule->looked_tick - schedule->asleep_since_tick;
    uint64_t turn = 0;
    if (thread_count > THREADS_WITHOUT_TURNS)
        turn = (thread_count - THREADS_WITHOUT_TURNS) / LOOKS_PER_TICK;
    if (turn > slept / TURN_PART_OF_SLEEP)
        turn = slept / TURN_PART_OF_SLEEP;
    uint64_t wait = slept / LOOK_PART_OF_SLEEP;
    wait = wait < turn ? turn : wait;
    thread_note(thread, EVENT_SLEPT_ON);
    schedule->proven = *proven;
    schedule->proven_ticks += schedule->look_ticks;
    schedule->proven_tick = schedule->looked_tick;
    schedule->next_look_tick = schedule->looked_tick + wait;
    if (wait > 1) {
        uint64_t spread = 1 + wait / SPREAD_PART_OF_WAIT;
        schedule->next_look_tick -= (schedule->looked_tick + (uint64_t)thread->tid) % spread;
    }
}

uint64_t schedule_moved(struct thread *thread, uint64_t last_look_tick, const struct moment *rest)
{
    struct thread_schedule *schedule = &thread->schedule;
    bool was_asleep = thread->phase == PHASE_ASLEEP;
    uint64_t known_tick = last_look_tick;
    if (was_asleep && rest->tick > last_look_tick && rest->tick < schedule->looked_tick) {
        known_tick = rest->tick;
        schedule->proven.at_ns = rest->at_ns;
        schedule->proven_ticks += rest->tick - last_look_tick;
        schedule->proven_tick = rest->tick;
        schedule->look_ticks = schedule->looked_tick - rest->tick;
    }
    uint64_t assumed = 0;
    if (was_asleep && schedule->looked_tick > known_tick + 1)
        assumed = schedule->looked_tick - known_tick - 1;
    thread_note(thread, EVENT_MOVED);
    schedule->asleep_since_tick = schedule->looked_tick;
    schedule->next_look_tick = 0;
    return assumed;
}

void schedule_slept_until(struct thread_schedule *schedule, const struct reading *until,
                          uint64_t asleep_ticks, uint64_t runnable_ticks)
{
    schedule->proven = *until;
    schedule->proven_ticks += asleep_ticks;
    schedule->proven_tick = schedule->looked_tick - runnable_ticks;
    schedule->look_ticks = runnable_ticks;
}

void schedule_was_asleep(struct thread_schedule *schedule, uint64_t tick)
{
    schedule->looked_tick = schedule->asleep_since_tick = tick;
}

void schedule_unseen(struct thread_schedule *schedule, uint64_t ticks)
{
    schedule->unseen_ticks = ticks;
    schedule->unseen_tick = schedule->looked_tick;
}

void schedule_reported(struct thread_schedule *schedule)
{
    schedule->proven_ticks = schedule->unseen_ticks = 0;
}

void schedule_leave_out(struct thread_schedule *schedule, uint64_t tick, uint64_t next_tick)
{
    schedule->looked_tick = tick;
    schedule->next_look_tick = next_tick;
}
