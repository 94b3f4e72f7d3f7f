#include "worker/sleeps.h"

void sleeps_note_stop(struct thread_sleeps *sleeps, const struct observation *observation)
{
    /* A thread that had gone to sleep was woken for the stop, too. */
    if (observation->evidence == EVIDENCE_STOPPED)
        sleeps->stops += thread_state_waits(observation->state) ? 2 : 1;
}

/* Which part of the switches since the last reading were preemptions. The first one tells of all of
 * the thread's life. */
static double preempted_part(const struct thread_sleeps *sleeps,
                             const struct observation *observation)
{
    uint64_t switches = observation->now.activity.switches, preemptions = observation->preemptions;
    if (!observation->has_preemptions ||
        (sleeps->has_preemptions && preemptions < sleeps->read_preemptions))
        return sleeps->preempted_part;
    if (sleeps->has_preemptions) {
        switches -= sleeps->read_switches;
        preemptions -= sleeps->read_preemptions;
    }
    return preemptions < switches ? (double)preemptions / (double)switches : 1;
}

/* From here on, what the next look tells is counted anew. */
static void start_anew(struct thread_sleeps *sleeps, const struct observation *observation,
                       double part, double owed)
{
    sleeps->has_preemptions = observation->has_preemptions;
    sleeps->read_switches = observation->now.activity.switches;
    sleeps->read_preemptions = observation->preemptions;
    sleeps->preempted_part = part;
    sleeps->owed = owed;
    sleeps->stops = sleeps->counted = 0;
}

/* Whether what was counted before says anything of this sleep. */
static bool goes_on(const struct thread_sleeps *sleeps, const struct reading *now)
{
    return sleeps->is_known && now->has_activity &&
           sleeps->counts_ends == now->activity.counts_ends &&
           sleeps->switches <= now->activity.switches;
}

static uint64_t take_first(struct thread_sleeps *sleeps, const struct observation *observation)
{
    *sleeps = (struct thread_sleeps){
        .is_known = observation->now.has_activity,
        .counts_ends = observation->now.activity.counts_ends,
        .switches = observation->now.activity.switches,
    };
    start_anew(sleeps, observation, preempted_part(sleeps, observation), 0);
    return 1;
}

uint64_t sleeps_take(struct thread_sleeps *sleeps, const struct observation *observation)
{
    uint64_t switches = observation->now.activity.switches;
    if (!goes_on(sleeps, &observation->now))
        return take_first(sleeps, observation);
    if (switches == sleeps->switches)
        return 0;
    double part = preempted_part(sleeps, observation);
    double slept = (double)(switches - sleeps->read_switches) * (1 - part) - (double)sleeps->stops;
    double owed = sleeps->owed + slept - (double)sleeps->counted;
    uint64_t count = owed > 1 ? (uint64_t)(owed + 0.5) : 1;
    sleeps->switches = switches;
    sleeps->counted += count;
    if (observation->has_preemptions)
        start_anew(sleeps, observation, part, owed - (double)count);
    return count;
}
