/* Whether any thread of a process has run unseen.
 *
 * The kernel adds up the CPU time of a process, and reading that sum is much cheaper than looking
 * at all its threads. CPU time that looks do not account for was used by a thread that has not been
 * looked at since: a thread that slept for long, or one that is not listed yet. So while a process
 * is at rest, its threads may be looked at and listed seldom; once any thread has run, all are
 * looked at soon, in a sweep.
 *
 * This proves little. The sum lacks the time that a running thread has used since the scheduler's
 * last tick, and time that one thread was seen to use meanwhile can hide as much of another. So the
 * proof that a thread slept is its own count of switches. The sum is only used for a thread that
 * has moved since its last look: the thread was still asleep while the sum was accounted for, so a
 * look made because another thread has run does not represent all the time before it. */
#ifndef FGPROF_SAMPLER_ACTIVITY_CHECK_H
#define FGPROF_SAMPLER_ACTIVITY_CHECK_H

#include "sampler/process.h"

/* Reads the process's CPU time; called before the looks of a round. */
void activity_check_read(struct sampled_process *process);
/* Called instead of activity_check_read if the round will look at all threads. */
void activity_check_need_not_read(struct sampled_process *process);

/* A look has found how long the thread has run; the look before was at `last_look_tick`. */
void activity_check_note_look(struct sampled_process *process, struct thread *thread,
                              const struct reading *now, uint64_t last_look_tick);

/* Called after the looks of a round at `tick`: begins a sweep if a thread has run unseen and
 * earlier sweeps have not cost too much. If threads run unseen all the time, a sweep skips threads
 * that were looked at since the last sweep. `is_whole`: all threads that were due in this round
 * have been looked at. */
void activity_check_judge(struct sampled_process *process, uint64_t tick, bool is_whole);

/* Begins a sweep unconditionally. */
void activity_check_sweep(struct sampled_process *process, uint64_t tick);

/* Whether a sweep is under way that has not reached the thread yet. */
static inline bool activity_check_wants_look(const struct sampled_process *process,
                                             const struct thread *thread)
{
    return thread->schedule.looked_tick < process->activity_check.sweep_tick;
}

#endif
