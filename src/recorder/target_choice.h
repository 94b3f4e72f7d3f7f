/* Which of the target's threads are sampled: decided by their names and ids while sampling, so that
 * the others are neither looked at nor stopped. */
#ifndef FGPROF_RECORDER_TARGET_CHOICE_H
#define FGPROF_RECORDER_TARGET_CHOICE_H

#include "recorder/target.h"

/* Of a thread that is seen for the first time: sets its is_unwanted. Returns 0 or -ENOMEM. */
int target_choose_first(struct target *target, struct thread *thread);

/* At its turn to be looked at: chooses anew by its name, where that was read long ago. Returns 0 or
 * -ENOMEM. */
int target_choose_again(struct target *target, struct thread *thread, uint64_t tick);

/* Reads its name, and chooses anew where that has changed. Returns 0 or -ENOMEM. */
int target_read_name(struct target *target, struct thread *thread);

#endif
