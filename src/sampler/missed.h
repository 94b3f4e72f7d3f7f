/* Sleeps that were over before a look at them was proven. The shorter a sleep is, the more often
 * that happens, and without a proof its stack is not known. So such a look counts for the next one
 * that finds the thread in the same call, with the same stack pointer and program counter, and
 * proves it: each place where the thread sleeps has its share of the looks, however short its
 * sleeps are. */
#ifndef FGPROF_SAMPLER_MISSED_H
#define FGPROF_SAMPLER_MISSED_H

#include "sampler/threads.h"

/* A look, which stands for `ticks`, found the thread asleep but was not proven. */
void missed_note(struct thread_missed *missed, const struct observation *observation,
                 uint64_t ticks);

/* A look has proven where the thread sleeps. Returns for how many ticks it stands beside its own.
 */
uint64_t missed_take(struct thread_missed *missed, const struct observation *observation);

#endif
