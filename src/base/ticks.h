/* When ticks are due. Time is divided into periods: period n begins at start_ns + n * period_ns.
 * Each period has one tick, at a random time: ticks at equal intervals would stay in step with a
 * program that does something at equal intervals too, and always sample the same part of it.
 *
 * BPF programs include this file too, so that they can compute the time of any tick. */
#ifndef FGPROF_BASE_TICKS_H
#define FGPROF_BASE_TICKS_H

#include "base/random.h"

struct ticks {
    uint64_t start_ns, period_ns; /* a period is less than 2^32 ns */
    uint64_t seed;                /* decides the moments of all ticks */
};

/* When the tick of this period is due. */
static inline uint64_t ticks_due_ns(const struct ticks *ticks, uint64_t period)
{
    return ticks->start_ns + period * ticks->period_ns +
           random_below((uint32_t)ticks->period_ns, ticks->seed, period);
}

/* The number of the period that `now_ns` is in, from 0; 0 before the start. */
static inline uint64_t ticks_period_at(const struct ticks *ticks, uint64_t now_ns)
{
    return now_ns < ticks->start_ns ? 0 : (now_ns - ticks->start_ns) / ticks->period_ns;
}

/* How many ticks had come due by `now_ns`. */
static inline uint64_t ticks_until(const struct ticks *ticks, uint64_t now_ns)
{
    uint64_t period = ticks_period_at(ticks, now_ns);
    return period + (now_ns >= ticks_due_ns(ticks, period));
}

#endif
