/* What threads are called, and which of them are sampled: decided by their names and ids while
 * sampling, so that the others are neither looked at nor stopped. All return 0 or -ENOMEM. */
#ifndef FGPROF_SAMPLER_NAMING_H
#define FGPROF_SAMPLER_NAMING_H

#include "sampler/state.h"

/* For a thread that is seen for the first time: whether it is wanted. */
int naming_first(struct sampler *sampler, struct sampled_process *process, struct thread *thread);

/* When it is its turn to be looked at: reads its name again if it was read long ago, and chooses
 * anew if it has changed. */
int naming_again(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                 uint64_t tick);

/* Its process runs another program: its name is likely another one. */
void naming_expire(struct thread *thread);

#endif
