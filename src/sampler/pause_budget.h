/* How much of its running time a thread may lose to our pauses. */
#ifndef FGPROF_SAMPLER_PAUSE_BUDGET_H
#define FGPROF_SAMPLER_PAUSE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Two balances: the thread's running time pays a share of it into both, and a pause takes out how
 * long it was. `balance_ns` has to be above zero for the next one, and a pause takes no more than
 * PAUSE_COUNTED_MAX_NS out of it: where the machine stalls with a thread paused, for 100 ms say,
 * what the thread does next would else go unseen for seconds, and its next sample stand for all of
 * them. `whole_ns` takes each pause as it was, and allows a debt of PAUSE_DEBT_MAX_NS. */
struct pause_budget {
    int64_t balance_ns, whole_ns;
    uint64_t running_ns; /* up to here it has been paid in */
    bool has_begun;
};

#define PAUSE_COUNTED_MAX_NS 2000000
#define PAUSE_DEBT_MAX_NS 500000000

/* Pays in for the time that the thread ran, by a clock of it that says `running_ns` now, and
 * returns whether it may be paused. */
bool pause_budget_allows(struct pause_budget *budget, uint64_t running_ns,
                         double max_pause_percent);

void pause_budget_spend(struct pause_budget *budget, uint64_t pause_ns);

#endif
