/* Sleeps that were over before a look at them was proven. The shorter a sleep is, the more often
 * that happens, and without a proof its stack is not known. So such a look counts for a later one
 * that finds the thread in the same call, with the same stack pointer and program counter, and
 * proves it just before that sleep is over too. Of the sleeps in one place, from different
 * functions, each has as many of these as it has ends: the same share as of those that were missed,
 * while of all that are proven, the long ones have most. */
#ifndef FGPROF_SAMPLER_MISSED_SLEEPS_H
#define FGPROF_SAMPLER_MISSED_SLEEPS_H

#include "sampler/threads.h"

/* A look, which stands for `ticks`, found the thread asleep but was not proven. */
void missed_sleeps_note(struct thread_missed_sleeps *missed, const struct observation *observation,
                        uint64_t ticks);

/* A look has proven where the thread sleeps. Returns for how many ticks it stands beside its own.
 */
uint64_t missed_sleeps_take(struct thread_missed_sleeps *missed,
                            const struct observation *observation);

#endif
