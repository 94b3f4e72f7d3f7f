/* Which threads a process has: those that have come are taken in, and the worker is told of those
 * that have gone. Both return 0 or -ENOMEM. */
#ifndef FGPROF_SAMPLER_LISTING_H
#define FGPROF_SAMPLER_LISTING_H

#include "sampler/state.h"

/* Lists them if it is likely that they have changed. Very many are listed over several rounds. */
int listing_update(struct sampler *sampler, struct sampled_process *process);

/* Lists all at once. */
int listing_update_whole(struct sampler *sampler, struct sampled_process *process);

/* Up to when a thread that has gone lived: until threads were listed last, it among them, even if
 * it was gone before it could be looked at; or until the round before, which found their number
 * unchanged. That is as much too early as those that come are counted from too early. */
uint64_t listing_gone_ns(const struct sampler *sampler, const struct sampled_process *process);

#endif
