/* Which threads a process has: adds new ones, and reports those that have gone to the worker. */
#ifndef FGPROF_SAMPLER_LISTING_H
#define FGPROF_SAMPLER_LISTING_H

#include "sampler/state.h"

/* Lists the threads if they have probably changed. Very many are listed over several rounds.
 * Returns 0 or -ENOMEM. */
int listing_update(struct sampler *sampler, struct sampled_process *process);

/* Lists all threads at once. Returns 0 or -ENOMEM. */
int listing_update_whole(struct sampler *sampler, struct sampled_process *process);

/* Threads that are there when the recording starts are counted from then on, by what the kernel's
 * account of each said at that time. Reads the accounts until `until_ns`; there may be more threads
 * than that gives time for. A thread whose account is read later is taken to have slept since the
 * start, and that time is counted as assumed. */
void listing_read_begins(struct sampler *sampler, struct sampled_process *process,
                         uint64_t until_ns);
void listing_read_begin(struct sampler *sampler, const struct sampled_process *process,
                        struct thread *thread);

/* The thread has gone: closes its own events. */
void listing_close_events(struct sampler *sampler, const struct thread *thread);

/* Until when a thread that has gone is taken to have lived: until the last listing, which showed it
 * even if it was gone before it could be looked at, or until the round before, which found the
 * number of threads unchanged. That is as much too early as new threads are counted from too
 * early. */
uint64_t listing_gone_ns(const struct sampler *sampler, const struct sampled_process *process);

#endif
