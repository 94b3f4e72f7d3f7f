/* How much of its running time a thread may lose to our pauses. */
#ifndef FGPROF_RECORDER_PAUSE_BUDGET_H
#define FGPROF_RECORDER_PAUSE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* A balance: the thread's running time pays in a share of it, a pause takes out how long it was. */
struct pause_budget {
    int64_t balance_ns;
    uint64_t running_ns; /* up to here it has been paid in */
    bool has_begun;
};

/* Pays in for the time that the thread ran, by a clock of it that says `running_ns` now, and
 * returns whether it may be paused. */
bool pause_budget_allows(struct pause_budget *budget, uint64_t running_ns,
                         double max_pause_percent);

void pause_budget_spend(struct pause_budget *budget, uint64_t pause_ns);

#endif
