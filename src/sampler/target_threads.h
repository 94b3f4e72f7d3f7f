/* Which threads a target has: those that have come are taken in, and the time of those that have
 * gone is settled. */
#ifndef FGPROF_SAMPLER_TARGET_THREADS_H
#define FGPROF_SAMPLER_TARGET_THREADS_H

#include "sampler/target.h"

/* Where it is likely that they have changed. Very many are listed over several rounds. Returns 0 or
 * -ENOMEM. */
int target_update_threads(struct target *target);

/* The same, at once. */
int target_list_all_threads(struct target *target);

#endif
