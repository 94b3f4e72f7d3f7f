/* What is done with a thread next: its phase, and what makes it another one. */
#ifndef FGPROF_SAMPLER_PHASE_H
#define FGPROF_SAMPLER_PHASE_H

enum thread_phase {
    PHASE_LISTED,   /* the kernel's account at its begin is read next */
    PHASE_AWAKE,    /* looked at at each tick: not known to sleep for longer than that */
    PHASE_ASLEEP,   /* a look found it where the one before did: looked at ever more seldom */
    PHASE_TO_STOP,  /* stopped next: not looked at */
    PHASE_STOPPING, /* asked to stop: not looked at */
    PHASE_UNWANTED, /* not chosen by its name: only its name is read */
};

enum phase_event {
    EVENT_BEGIN_READ,
    EVENT_SLEPT_ON, /* a look has proved it */
    EVENT_MOVED,    /* a look says so, or it has to be copied again */
    EVENT_STOP_WANTED,
    EVENT_STOP_BEGUN,
    EVENT_STOP_OVER, /* it was stopped and let go, or can't be stopped */
    EVENT_NAME_UNWANTED,
    EVENT_NAME_WANTED,
    PHASE_EVENTS,
};

enum thread_phase phase_after(enum thread_phase phase, enum phase_event event);

#endif
