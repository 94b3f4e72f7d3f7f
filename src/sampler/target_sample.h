/* One sample: what was captured of a thread is unwound and counted. */
#ifndef FGPROF_SAMPLER_TARGET_SAMPLE_H
#define FGPROF_SAMPLER_TARGET_SAMPLE_H

#include "sampler/target.h"

/* Looks at `thread`, at this tick, and counts its stack where it sleeps; where it runs, sets its
 * needs_stop. Returns 0 or -ENOMEM. */
int target_look(struct target *target, struct thread *thread, uint64_t tick);

/* Attaches to `thread`, to stop it; sets its is_stopping, unless it is gone or can't be traced.
 * Returns 0 or -ENOMEM. */
int target_begin_stop(struct target *target, struct thread *thread);

/* Remembers the exit status where `stop` has seen the end of the process's first thread. */
void target_note_exit(struct target *target, const struct stop *stop);

/* Counts what a collected stop has brought. Returns 0 or -ENOMEM. */
int target_end_stop(struct target *target, struct pending_stop *stop);

#endif
