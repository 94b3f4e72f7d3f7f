/* A recording's time: when it began, its ticks, and its end. Ticks are at start_ns + n * period_ns.
 */
#ifndef FGPROF_SAMPLER_CLOCK_H
#define FGPROF_SAMPLER_CLOCK_H

#include <stdint.h>

struct clock {
    uint64_t start_ns;      /* CLOCK_MONOTONIC */
    uint64_t start_time_ns; /* the same moment in wall-clock time, since 1970 */
    uint64_t end_ns;        /* 0 until it ends */
    uint64_t period_ns;
    uint64_t awake_ns; /* the sampling thread has not waited for a tick since then */
};

/* The moment up to which time is counted: now, or the end once that is reached. */
uint64_t clock_now_ns(const struct clock *clock);

/* How many ticks had come due by `now_ns`. */
uint64_t clock_tick_at(const struct clock *clock, uint64_t now_ns);

#endif
