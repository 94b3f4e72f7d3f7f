/* One sample: what was captured of a thread is unwound and counted. */
#ifndef FGPROF_RECORDER_TARGET_SAMPLE_H
#define FGPROF_RECORDER_TARGET_SAMPLE_H

#include "recorder/target.h"

/* Captures `thread`, or goes on with the capture that is pending for it, and counts its stack. Sets
 * target->is_pending where it has not stopped yet. Returns 0 or -ENOMEM. */
int target_sample(struct target *target, struct thread *thread);

/* Counts a thread's outstanding time as not captured, where it is more than one period. */
int target_count_lost(struct target *target, struct thread *thread);

#endif
