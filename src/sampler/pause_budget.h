/* How much of its running time a thread may lose to our pauses. */
#ifndef FGPROF_SAMPLER_PAUSE_BUDGET_H
#define FGPROF_SAMPLER_PAUSE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Two balances. The thread pays a share of its running time into both, and each pause is taken out.
 * The next pause is allowed only if `balance_ns` is above zero. At most PAUSE_COUNTED_MAX_NS per
 * pause is taken out of `balance_ns`: otherwise, if the machine stalls with a thread paused, for
 * 100 ms say, the thread would go unseen for seconds, and its next sample would represent all of
 * them. `whole_ns` takes each pause in full, and may go down to a debt of PAUSE_DEBT_MAX_NS. */
struct pause_budget {
    int64_t balance_ns, whole_ns;
    uint64_t running_ns; /* paid in up to here */
    bool has_begun;
};

#define PAUSE_COUNTED_MAX_NS 2000000
#define PAUSE_DEBT_MAX_NS 500000000

/* Pays in for the time that the thread ran, up to `running_ns` of its own clock, and returns
 * whether it may be paused: only if that leaves more than `reserve_ns` for other pauses. */
bool pause_budget_allows(struct pause_budget *budget, uint64_t running_ns, double max_pause_percent,
                         int64_t reserve_ns);

void pause_budget_spend(struct pause_budget *budget, uint64_t pause_ns);

#endif
