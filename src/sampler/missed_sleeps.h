/* Sleeps that ended before a look at them was proven. The shorter a sleep is, the more often that
 * happens, and without a proof its stack is not known. So the ticks of such a look are added to
 * those of a later look that finds the thread in the same call, with the same stack pointer and
 * program counter, and is proven just before that sleep ends too. If different functions sleep in
 * one place, proofs just before an end are distributed like the ends of their sleeps, and so like
 * the missed looks; most of all proven looks are of long sleeps. */
#ifndef FGPROF_SAMPLER_MISSED_SLEEPS_H
#define FGPROF_SAMPLER_MISSED_SLEEPS_H

#include "sampler/threads.h"

/* A look that represents `ticks` found the thread asleep but was not proven. */
void missed_sleeps_note(struct thread_missed_sleeps *missed, const struct observation *observation,
                        uint64_t ticks);

/* A look has proven where the thread sleeps. Returns how many ticks it represents besides its own.
 */
uint64_t missed_sleeps_take(struct thread_missed_sleeps *missed,
                            const struct observation *observation);

#endif
