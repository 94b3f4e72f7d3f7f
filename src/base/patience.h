/* How long something is waited for. */
#ifndef FGPROF_BASE_PATIENCE_H
#define FGPROF_BASE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Of one look to the next, no more counts: where the machine stalled, or others had our CPU for
 * longer, what we wait for had no time to come either. */
#define PATIENCE_STEP_NS 10000000u

struct patience {
    uint64_t left_ns;
    uint64_t looked_ns; /* by the clock, the last time */
};

/* Whether to look once more; `now_ns` is the time of this look. */
static inline bool patience_lasts(struct patience *patience, uint64_t now_ns)
{
    uint64_t waited_ns = now_ns - patience->looked_ns;
    if (waited_ns > PATIENCE_STEP_NS)
        waited_ns = PATIENCE_STEP_NS;
    if (waited_ns > patience->left_ns)
        waited_ns = patience->left_ns;
    patience->left_ns -= waited_ns;
    patience->looked_ns = now_ns;
    return patience->left_ns > 0;
}

#endif
