/* Counting: what is owed to a thread's samples, for the stack that was found. */
#ifndef FGPROF_SAMPLER_TARGET_COUNT_H
#define FGPROF_SAMPLER_TARGET_COUNT_H

#include "sampler/target.h"

/* Counts target->stack, of target->capture, for the thread. Returns 0 or -ENOMEM. */
int target_count(struct target *target, struct thread *thread);

/* Counts the last sample of a thread again that has slept since. */
void target_count_unmoved(struct target *target, struct thread *thread);

/* The thread may not be stopped, or can't be looked at: counts what has passed as not captured,
 * where it is more than a period or two. Returns 0 or -ENOMEM. */
int target_count_not_captured(struct target *target, struct thread *thread);

/* The thread is gone, or the recording at its end. Settles its ledger: its time until `until_ns` is
 * counted for where it was seen last, or as not captured where it was not seen. `is_certain`: it
 * was there until then, and is in a dump. Returns 0 or -ENOMEM. */
int target_count_end(struct target *target, struct thread *thread, uint64_t until_ns,
                     bool is_certain);

#endif
