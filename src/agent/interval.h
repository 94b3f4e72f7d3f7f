/* How many bytes a thread allocates from one sample to the next. These are random numbers from an
 * exponential distribution: each byte is equally likely to be sampled, whatever the sizes and the
 * order of allocations are, so an allocation of `size` bytes is sampled with probability 1 -
 * e^(-size/rate). */
#ifndef FGPROF_AGENT_INTERVAL_H
#define FGPROF_AGENT_INTERVAL_H

#include <stdint.h>

/* Draws the number of bytes up to the next sampled byte, `rate` on average. `random` is the state
 * of the random numbers. */
int64_t interval_draw(uint64_t *random, uint64_t rate);

#endif
