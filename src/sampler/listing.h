/* Which threads a process has: adds new threads, and reports to the worker which ones are gone. */
#ifndef FGPROF_SAMPLER_LISTING_H
#define FGPROF_SAMPLER_LISTING_H

#include "sampler/state.h"

/* Lists the threads if they have probably changed. Listing very many takes several rounds. Returns
 * 0 or -ENOMEM. */
int listing_update(struct sampler *sampler, struct sampled_process *process);

/* Lists all threads at once. Returns 0 or -ENOMEM. */
int listing_update_whole(struct sampler *sampler, struct sampled_process *process);

/* Threads that exist when the recording starts are counted from then on, starting at the values of
 * their kernel accounts at that time. Reads accounts until `until_ns`, which may not be enough time
 * for all threads. A thread whose account is read later is assumed to have slept since the start,
 * and that time is counted as assumed. */
void listing_read_begins(struct sampler *sampler, struct sampled_process *process,
                         uint64_t until_ns);
void listing_read_begin(struct sampler *sampler, const struct sampled_process *process,
                        struct thread *thread);

/* Until when a thread that is gone is assumed to have lived: until the last listing, which showed
 * it even if it was gone before it could be looked at, or until the round before, which found the
 * number of threads unchanged. That is too early by as much as the assumed begin of new threads
 * is. */
uint64_t listing_gone_ns(const struct sampler *sampler, const struct sampled_process *process);

#endif
