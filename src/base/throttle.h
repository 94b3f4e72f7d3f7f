/* Limits how often something costly is done: not again before some time has passed, and for no more
 * than a share of all time. */
#ifndef FGPROF_BASE_THROTTLE_H
#define FGPROF_BASE_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

/* Starts zeroed: never done. */
struct throttle {
    uint64_t done_ns; /* when it was last done, by the caller's clock */
    uint64_t cost_ns; /* how long that took */
};

/* Whether it may be done at `now_ns`: `age_ns` must have passed since the last time, and so must
 * `part_of_time` times what that cost. */
static inline bool throttle_allows(const struct throttle *throttle, uint64_t now_ns,
                                   uint64_t age_ns, uint64_t part_of_time)
{
    uint64_t passed_ns = now_ns > throttle->done_ns ? now_ns - throttle->done_ns : 0;
    return passed_ns >= age_ns && passed_ns >= part_of_time * throttle->cost_ns;
}

#endif
