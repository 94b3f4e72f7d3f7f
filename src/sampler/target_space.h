/* Keeps a target's address space in step with what its process has mapped. */
#ifndef FGPROF_SAMPLER_TARGET_SPACE_H
#define FGPROF_SAMPLER_TARGET_SPACE_H

#include "sampler/target.h"

/* Makes target->space that of the program that runs now. Returns 0, or a negative errno and then
 * target->space is NULL; all but -ENOMEM may pass. */
int target_space_update(struct target *target);

/* Whether the process still runs the program of target->space. */
bool target_space_is_current(const struct target *target);

/* Reads the maps again, at most once a round, of a new program once more, and makes target->space
 * the one that holds them. *ret_changed: whether there was anything new. Returns 0 or -ENOMEM. */
int target_space_refresh(struct target *target, bool *ret_changed);

/* Reads anew where mappings end, at most once a round. Returns whether it did. */
bool target_space_refresh_areas(struct target *target);

void target_space_close(struct target *target);

#endif
