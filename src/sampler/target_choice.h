/* Which of the target's threads are sampled: decided by their names and ids while sampling, so that
 * the others are neither looked at nor stopped. */
#ifndef FGPROF_SAMPLER_TARGET_CHOICE_H
#define FGPROF_SAMPLER_TARGET_CHOICE_H

#include "sampler/target.h"

/* Of a thread that is seen for the first time: sets its is_unwanted. Returns 0 or -ENOMEM. */
int target_choose_first(struct target *target, struct thread *thread);

/* At its turn to be looked at: chooses anew by its name, where that was read long ago. Returns 0 or
 * -ENOMEM. */
int target_choose_again(struct target *target, struct thread *thread, uint64_t tick);

/* Each sample of it that was taken, and not counted again for a thread that has not moved, is told:
 * its name is read at the first ones, then ever less often, and where it has changed, it is chosen
 * anew. Returns 0 or -ENOMEM. */
int target_name_sampled(struct target *target, struct thread *thread);

/* The same of each look that found it where it had slept at the last one. Another may name it
 * meanwhile, as who made it does: the name is read whenever it has slept for twice as long. */
int target_name_unmoved(struct target *target, struct thread *thread, uint64_t last_look_tick);

#endif
