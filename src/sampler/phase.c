#include "sampler/phase.h"

/* An event that is not in a phase's row changes nothing there: a thread that was asked to stop,
 * say, has moved because of us. */
static const struct {
    enum thread_phase phase;
    enum phase_event event;
    enum thread_phase next;
} changes[] = {
    {PHASE_LISTED, EVENT_BEGIN_READ, PHASE_AWAKE},
    {PHASE_LISTED, EVENT_NAME_UNWANTED, PHASE_UNWANTED},

    {PHASE_AWAKE, EVENT_SLEPT_ON, PHASE_ASLEEP},
    {PHASE_AWAKE, EVENT_STOP_WANTED, PHASE_TO_STOP},
    {PHASE_AWAKE, EVENT_NAME_UNWANTED, PHASE_UNWANTED},

    {PHASE_ASLEEP, EVENT_MOVED, PHASE_AWAKE},
    {PHASE_ASLEEP, EVENT_STOP_WANTED, PHASE_TO_STOP},
    {PHASE_ASLEEP, EVENT_NAME_UNWANTED, PHASE_UNWANTED},

    {PHASE_TO_STOP, EVENT_STOP_BEGUN, PHASE_STOPPING},
    {PHASE_TO_STOP, EVENT_STOP_OVER, PHASE_AWAKE},
    {PHASE_TO_STOP, EVENT_NAME_UNWANTED, PHASE_UNWANTED},

    {PHASE_STOPPING, EVENT_STOP_OVER, PHASE_AWAKE},

    {PHASE_UNWANTED, EVENT_NAME_WANTED, PHASE_AWAKE},
};

enum thread_phase phase_after(enum thread_phase phase, enum phase_event event)
{
    for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (changes[i].phase == phase && changes[i].event == event)
            return changes[i].next;
    }
    return phase;
}
