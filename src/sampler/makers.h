/* Tells the worker who made which thread (OBJECT_THREAD of objects/source.h): births as the
 * kernel tells them, and of the threads that are listed, those that nobody saw being made. */
#ifndef FGPROF_SAMPLER_MAKERS_H
#define FGPROF_SAMPLER_MAKERS_H

#include "sampler/state.h"

/* Begins to see births, if the options want them and it is permitted, of the processes that were
 * added so far. Does nothing if that was done before. Returns 0 or -ENOMEM. */
int makers_begin(struct sampler *sampler);

/* The process's births are seen from now on, or once any are. Returns 0 or -ENOMEM. */
int makers_follow(struct sampler *sampler, pid_t process_id);

/* Sends what is known, after the processes' threads were listed. `is_last`: a copy is to be made,
 * or sampling ends, so that nothing may wait for a later call. Returns 0 or -ENOMEM. */
int makers_tell(struct sampler *sampler, bool is_last);

/* The process's program ends: sends what is known of its threads while its code is. Returns 0 or
 * -ENOMEM. */
int makers_end_program(struct sampler *sampler, struct sampled_process *process);

/* The thread has come, or gone, by the process's list. Returns 0 or -ENOMEM. */
void makers_note_listed(const struct sampled_process *process, struct thread *thread);
int makers_tell_gone(struct sampler *sampler, struct sampled_process *process,
                     const struct thread *thread);

/* Adds what is known of the counts of OBJECT_THREAD. */
void makers_count(const struct sampler *sampler, struct object_counts *counts);

void makers_forget_process(struct sampler *sampler, struct sampled_process *process);
void makers_end(struct sampler *sampler);

#endif
