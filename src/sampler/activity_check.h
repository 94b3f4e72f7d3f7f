/* Whether any thread of a process has run unseen.
 *
 * The kernel adds up the CPU time of a process, and reading that sum costs a small part of what
 * looks at all its threads cost. What looks do not account for was used by a thread that has not
 * been looked at since: one that slept for long, or one that is not listed yet. So while a process
 * is at rest its threads may be looked at and listed seldom, and once one has run all are looked at
 * soon, in a sweep.
 *
 * This proves little. The sum leaves out what a running thread has used since the scheduler's last
 * tick, and what one thread was seen to use meanwhile can hide as much of another. So that a thread
 * slept is proved by its own count of switches. Only if it has moved since the last look, the sum
 * tells until when it was still there: a look that comes because another one has run does not
 * stand for the long time before. */
#ifndef FGPROF_SAMPLER_ACTIVITY_CHECK_H
#define FGPROF_SAMPLER_ACTIVITY_CHECK_H

#include "sampler/process.h"

/* Reads the process's CPU time, before the looks of a round. */
void activity_check_read(struct sampled_process *process);
/* Instead, if the round will look at all threads. */
void activity_check_need_not_read(struct sampled_process *process);

/* A look has found how long the thread has run; the look before was at `last_look_tick`. */
void activity_check_note_look(struct sampled_process *process, struct thread *thread,
                              const struct reading *now, uint64_t last_look_tick);

/* After the looks of a round at `tick`: begins a sweep if a thread has run unseen and the sweeps
 * before have not cost too much. In a process where one always has, a sweep leaves out threads
 * that were looked at since the last one. `is_whole`: all threads that were due in this round have
 * been looked at. */
void activity_check_judge(struct sampled_process *process, uint64_t tick, bool is_whole);

/* Begins a sweep in any case. */
void activity_check_sweep(struct sampled_process *process, uint64_t tick);

/* Whether a sweep is under way that has not reached the thread yet. */
static inline bool activity_check_wants_look(const struct sampled_process *process,
                                             const struct thread *thread)
{
    return thread->schedule.looked_tick < process->activity_check.sweep_tick;
}

#endif
