/* Tells the worker of a thread's life: completes observations and sends them.
 *
 * The time of a thread is told in one piece: from life.begin to its end, each observation goes on
 * where the one before ended. A thread that sleeps for long is told of now and then. All functions
 * return 0 or -ENOMEM. */
#ifndef FGPROF_SAMPLER_TELL_H
#define FGPROF_SAMPLER_TELL_H

#include "sampler/state.h"

/* Sends an observation with a copy: its snapshot is the worker's from then on. */
int tell_observed(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                  struct observation *observation);

/* It still sleeps: by schedule.proven. */
int tell_unmoved(struct sampler *sampler, struct sampled_process *process, struct thread *thread);

/* It is there, and could not be observed. Nothing if it was told of not long ago. */
int tell_assumed(struct sampler *sampler, struct sampled_process *process, struct thread *thread);

/* Its counted time ends with `until`; `is_certain`: it was there until then. Nothing if none of its
 * time is counted. */
int tell_gone(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
              const struct reading *until, bool is_certain);

/* The process runs its program no more: there is none from now on. */
int tell_program_ended(struct sampler *sampler, struct sampled_process *process);

/* A process is sampled from now on: gives it its number. */
int tell_process(struct sampler *sampler, struct sampled_process *process);

/* The time of a thread counts from `begin` on. */
void tell_begin(struct thread *thread, const struct reading *begin);

/* What the kernel's account of the thread says now. */
struct reading tell_read(struct sampler *sampler, const struct sampled_process *process,
                         const struct thread *thread);

#endif
