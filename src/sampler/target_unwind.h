/* From a target's snapshot to its stack, with what helps where the snapshot alone does not do. */
#ifndef FGPROF_SAMPLER_TARGET_UNWIND_H
#define FGPROF_SAMPLER_TARGET_UNWIND_H

#include "sampler/target.h"

/* Unwinds target->snapshot of `thread` into target->stack: reads the maps again where an address is
 * not known, and looks for a frame pointer that is missing. Returns 0, -ENOMEM, or -EAGAIN where
 * the thread is to be captured anew, with more of its stack or by a stop, as is noted in `thread`.
 */
int target_unwind(struct target *target, struct thread *thread);

#endif
