/* Limits how often something costly is done: a minimum interval, and a maximum share of all time.
 */
#ifndef FGPROF_BASE_THROTTLE_H
#define FGPROF_BASE_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

/* Starts zeroed: never done. */
struct throttle {
    uint64_t done_ns; /* when it was last done, by the caller's clock */
    uint64_t cost_ns; /* how long that took */
};

/* Whether it may be done at `now_ns`: at least `age_ns`, and at least `part_of_time` times its
 * cost, must have passed since the last time. */
static inline bool throttle_allows(const struct throttle *throttle, uint64_t now_ns,
                                   uint64_t age_ns, uint64_t part_of_time)
{
    uint64_t passed_ns = now_ns > throttle->done_ns ? now_ns - throttle->done_ns : 0;
    return passed_ns >= age_ns && passed_ns >= part_of_time * throttle->cost_ns;
}

#endif
