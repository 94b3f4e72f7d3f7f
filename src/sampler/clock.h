/* A recording's time: when it began, its ticks, and its end. */
#ifndef FGPROF_SAMPLER_CLOCK_H
#define FGPROF_SAMPLER_CLOCK_H

#include "base/ticks.h"

struct clock {
    uint64_t start_ns;      /* CLOCK_MONOTONIC */
    uint64_t start_time_ns; /* the same moment in wall-clock time, since 1970 */
    uint64_t end_ns;        /* 0 until it ends */
    uint64_t period_ns;
    uint64_t seed;     /* decides the moments of all ticks */
    uint64_t awake_ns; /* the sampling thread has not waited for a tick since then */
};

/* The moment up to which time is counted: now, or the end once that is reached. */
uint64_t clock_now_ns(const struct clock *clock);

/* When its ticks are, for those that have to know without the clock. */
struct ticks clock_ticks(const struct clock *clock);

/* The number of the period that `now_ns` is in, from 0: how many have passed. */
uint64_t clock_period_at(const struct clock *clock, uint64_t now_ns);

/* When the tick of this period is due. */
uint64_t clock_tick_ns(const struct clock *clock, uint64_t period);

/* How many ticks had come due by `now_ns`. */
uint64_t clock_tick_at(const struct clock *clock, uint64_t now_ns);

#endif
