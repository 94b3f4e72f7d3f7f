/* The names of threads, and which threads are sampled. That is decided by name and id while
 * sampling, so that other threads are neither looked at nor stopped. */
#ifndef FGPROF_SAMPLER_NAMING_H
#define FGPROF_SAMPLER_NAMING_H

#include "sampler/state.h"

/* Decides whether a thread that is seen for the first time is wanted. */
void naming_first(struct sampler *sampler, struct sampled_process *process, struct thread *thread);

/* Called when the thread is due to be looked at: reads its name if the look needs it, that is, if
 * the name is not known or decides whether the thread is sampled. A name that is merely old is
 * noted for naming_take_due. Returns 0 or -ENOMEM. */
int naming_again(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                 uint64_t tick);

/* Called after the looks: reads the names that are old. Returns 0 or -ENOMEM. */
int naming_take_due(struct sampler *sampler, struct sampled_process *process);

/* The process runs another program, so the thread's name has probably changed. */
void naming_expire(struct thread *thread);

#endif
