#include "sampler/idle.h"

/* A thread has not moved as long as it sleeps with the same number of switches. A thread that was
 * woken by a stop is on its way back until it is found asleep again; that may take long if other
 * threads want its CPU. */
void idle_note_look(struct thread_idle *idle, enum outcome outcome,
                    const struct observation *observation)
{
    bool was_woken = idle->woken_at.pc != 0;
    bool is_asleep = outcome == OUTCOME_OBSERVED && observation->evidence == EVIDENCE_ASLEEP;
    /* The thread may still be in our stop, or waiting for a CPU there. */
    bool is_back =
        is_asleep && observation->state != THREAD_STOPPED && !observation->record.woken_ns;
    if (outcome == OUTCOME_UNMOVED || (was_woken && !is_back))
        return;
    if (!is_asleep) {
        idle->has_moved = true;
        return;
    }
    uint64_t switches = observation->now.activity.switches;
    bool has_moved = was_woken
                         ? !sleep_place_has(&idle->woken_at, &observation->snapshot->registers)
                         : switches != idle->first_switches;
    idle->has_moved = idle->has_moved || has_moved;
    idle->first_switches = switches;
    idle->woken_at.pc = 0;
}

void idle_note_departure(struct thread_idle *idle, const struct departure *departure)
{
    bool is_on_its_way = departure->state == THREAD_RUNNABLE ||
                         sleep_place_has(&idle->woken_at, &departure->registers);
    idle->has_moved = idle->has_moved || !idle->woken_at.pc || !is_on_its_way;
}

void idle_note_stop(struct thread_idle *idle, const struct observation *observation)
{
    if (observation->stop.asked.pc)
        idle->woken_at = observation->stop.asked;
    if (!idle->woken_at.pc)
        return;
    if (!sleep_place_has(&idle->woken_at, &observation->snapshot->registers)) {
        idle->woken_at.pc = 0;
        idle->has_moved = true;
    }
}
