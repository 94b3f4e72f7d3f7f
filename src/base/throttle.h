/* Keeps something that costs time from being done too often: not again before some time has passed,
 * and no more than a part of all time. */
#ifndef FGPROF_BASE_THROTTLE_H
#define FGPROF_BASE_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed at first: it was never done. */
struct throttle {
    uint64_t done_ns; /* when it was done last, by the clock that the caller uses, */
    uint64_t cost_ns; /* and how long that took */
};

/* Whether it may be done at `now_ns`: at least `age_ns` after the last time, and after
 * `part_of_time` times what that cost. */
static inline bool throttle_allows(const struct throttle *throttle, uint64_t now_ns,
                                   uint64_t age_ns, uint64_t part_of_time)
{
    uint64_t passed_ns = now_ns > throttle->done_ns ? now_ns - throttle->done_ns : 0;
    return passed_ns >= age_ns && passed_ns >= part_of_time * throttle->cost_ns;
}

#endif
