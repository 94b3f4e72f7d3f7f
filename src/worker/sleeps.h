/* How often a thread has slept, by the kernel's count of how often it was given a CPU.
 *
 * A thread that is found asleep anew has slept once for each switch since the sleep that was found
 * before, except that it was also preempted, and stopped by us. How often it was preempted is read
 * only now and then: until then it is taken to be as large a part of the switches as before, and
 * with the reading the difference is made up for. All these sleeps are counted where the thread is
 * found, as nothing tells where the others were: those of unseen places count for places nearby. */
#ifndef FGPROF_WORKER_SLEEPS_H
#define FGPROF_WORKER_SLEEPS_H

#include "observe/observation.h"

/* Zeroed at first. */
struct thread_sleeps {
    bool is_known; /* a sleep was found: */
    bool counts_ends;
    bool has_preemptions;
    uint64_t switches; /* the kernel's count at that sleep */
    /* When preemptions were last read, or else at the first sleep that was found: */
    uint64_t read_switches, read_preemptions;
    double preempted_part; /* of the switches up to then */
    double owed;           /* sleeps that were not counted by then; below 0: too many were */
    /* Since then: */
    uint64_t stops; /* switches that we made */
    uint64_t counted;
};

/* Notes that the thread was stopped by us, if it was. */
void sleeps_note_stop(struct thread_sleeps *sleeps, const struct observation *observation);

/* The thread was found asleep. Returns how many sleeps that stands for: 0 if it is the one that was
 * found before, else at least 1. */
uint64_t sleeps_take(struct thread_sleeps *sleeps, const struct observation *observation);

#endif
