/* Which CPUs threads are on, and whether the sampling thread took one from them.
 *
 * A thread that is asked to stop from another CPU goes on until the interrupt reaches it, on a
 * virtual machine for some 40 us, and if a system call of its returns meanwhile it stops there: a
 * server that makes many calls was found at their ends only. But a thread that a timer preempts
 * resumes where it was, and stops there. So where the kernel does not sample them, running threads
 * are stopped at visits to their CPUs (sampler/visits.h), and a look stops a thread only to learn
 * where it slept before it was woken.
 *
 * If we may not run on a thread's CPU, it is stopped from another one. */
#ifndef FGPROF_SAMPLER_TAKEN_CPU_H
#define FGPROF_SAMPLER_TAKEN_CPU_H

#include "sampler/state.h"

/* Notes which CPUs the calling thread, the sampling one, may run on. */
void taken_cpu_begin(struct sampler *sampler);
void taken_cpu_free(struct visits *visits);

bool taken_cpu_may_go_to(const struct visits *visits, int cpu);

/* The sampling thread has just woken up: notes when it got its CPU. */
void taken_cpu_note_awake(struct sampler *sampler);

/* Whether the thread had left that CPU, where it is now, before we came. */
bool taken_cpu_had_left(struct sampler *sampler, const struct sampled_process *process,
                        const struct thread *thread);

/* A look has found where the thread was: call it before anything is noted of that look. A thread
 * that has run since the look before is to be visited. */
void taken_cpu_note_look(struct sampler *sampler, const struct sampled_process *process,
                         struct thread *thread, enum outcome outcome, const struct reading *now);

/* Whether a thread that a look found awake is to be stopped for it: it had left our CPU before we
 * came, and so may have slept at the tick, or we can't go to its CPU. */
bool taken_cpu_leave_to_look(struct sampler *sampler, const struct sampled_process *process,
                             const struct thread *thread);

#endif
