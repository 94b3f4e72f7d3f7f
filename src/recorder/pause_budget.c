#include "recorder/pause_budget.h"

/* What a thread may be paused at first, before anything is known of it: some twenty samples. */
#define BALANCE_FIRST_NS 1000000
/* What can be saved up: no more than that is lost to pauses in a row. */
#define BALANCE_MAX_NS 10000000

bool pause_budget_allows(struct pause_budget *budget, uint64_t running_ns, double max_pause_percent)
{
    if (!budget->has_begun) {
        budget->has_begun = true;
        budget->balance_ns = BALANCE_FIRST_NS;
    } else if (running_ns > budget->running_ns) {
        double ran_ns = (double)(running_ns - budget->running_ns);
        double balance_ns = (double)budget->balance_ns + ran_ns * max_pause_percent / 100;
        budget->balance_ns =
            balance_ns < BALANCE_MAX_NS ? (int64_t)balance_ns : (int64_t)BALANCE_MAX_NS;
    }
    budget->running_ns = running_ns;
    return budget->balance_ns > 0;
}

void pause_budget_spend(struct pause_budget *budget, uint64_t pause_ns)
{
    budget->balance_ns -= (int64_t)pause_ns;
}
