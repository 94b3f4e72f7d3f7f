/* Which threads a process has: takes in those that have come, and tells the worker of those that
 * have gone. Both functions return 0 or -ENOMEM. */
#ifndef FGPROF_SAMPLER_LISTING_H
#define FGPROF_SAMPLER_LISTING_H

#include "sampler/state.h"

/* Lists the threads if they have probably changed. Very many are listed over several rounds. */
int listing_update(struct sampler *sampler, struct sampled_process *process);

/* Lists all threads at once. */
int listing_update_whole(struct sampler *sampler, struct sampled_process *process);

/* Until when a thread that has gone is taken to have lived: until the last listing, which showed it
 * even if it was gone before it could be looked at, or until the round before, which found the
 * number of threads unchanged. That is as much too early as new threads are counted from too
 * early. */
uint64_t listing_gone_ns(const struct sampler *sampler, const struct sampled_process *process);

#endif
