/* Which CPUs threads are on, and whether the sampling thread took one from them.
 *
 * A thread that is stopped from another CPU continues until the interrupt arrives, on a virtual
 * machine for some 40 us, and if one of its system calls returns meanwhile it stops there: a server
 * that makes many calls was only seen at their ends. But a thread that was preempted by a timer
 * resumes where it was, and stops there. So if the kernel does not sample running threads, they are
 * stopped at visits to their CPUs (sampler/visits.h), and a look stops a thread only to learn where
 * it slept before it was woken.
 *
 * If we may not run on a thread's CPU, it is stopped from another CPU. */
#ifndef FGPROF_SAMPLER_TAKEN_CPU_H
#define FGPROF_SAMPLER_TAKEN_CPU_H

#include "sampler/state.h"

/* Notes on which CPUs the calling thread, which is the sampling thread, may run. */
void taken_cpu_begin(struct sampler *sampler);
void taken_cpu_free(struct visits *visits);

bool taken_cpu_may_go_to(const struct visits *visits, int cpu);

/* The sampling thread has just woken up: notes when it got its CPU. */
void taken_cpu_note_awake(struct sampler *sampler);

/* Whether the thread had left our current CPU before we came. */
bool taken_cpu_had_left(struct sampler *sampler, const struct sampled_process *process,
                        const struct thread *thread);

/* A look has found where the thread was; call it before anything else is noted about that look. A
 * thread that has run since the previous look will be visited. */
void taken_cpu_note_look(struct sampler *sampler, const struct sampled_process *process,
                         struct thread *thread, enum outcome outcome, const struct reading *now);

/* Whether a thread that a look found awake should be stopped by that look: because it had left our
 * CPU before we came, and so may have slept at the tick, or because we can't go to its CPU. */
bool taken_cpu_leave_to_look(struct sampler *sampler, const struct sampled_process *process,
                             const struct thread *thread);

#endif
