/* One sample: what was captured of a thread is unwound and counted. */
#ifndef FGPROF_RECORDER_TARGET_SAMPLE_H
#define FGPROF_RECORDER_TARGET_SAMPLE_H

#include "recorder/target.h"

/* Looks at `thread`, and counts its stack where it sleeps; where it runs, sets its needs_stop.
 * Returns 0 or -ENOMEM. */
int target_look(struct target *target, struct thread *thread);

/* Stops `thread`, or goes on with the stop that is pending, and counts its stack. Sets
 * target->is_pending where it has not stopped yet. Returns 0 or -ENOMEM. */
int target_stop_and_sample(struct target *target, struct thread *thread);

/* The thread that a stop is pending for is not listed any more: only its end is to be seen. */
void target_collect_vanished(struct target *target);

/* Counts what is outstanding for a thread up to `until_ns` as not captured, where it is more than a
 * period; for one that was last seen asleep, as that. */
int target_count_lost(struct target *target, struct thread *thread, uint64_t until_ns);

#endif
