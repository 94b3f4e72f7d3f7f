#include "sampler/pause_budget.h"

/* How long a thread may be paused at first, before anything is known about it: some twenty
 * samples. */
#define BALANCE_FIRST_NS 1000000
/* The most that can be saved up, and so the most that consecutive pauses can take. */
#define BALANCE_MAX_NS 10000000

static int64_t paid_in(int64_t balance_ns, double payment_ns)
{
    double sum_ns = (double)balance_ns + payment_ns;
    return sum_ns < BALANCE_MAX_NS ? (int64_t)sum_ns : BALANCE_MAX_NS;
}

bool pause_budget_allows(struct pause_budget *budget, uint64_t running_ns, double max_pause_percent,
                         int64_t reserve_ns)
{
    if (!budget->has_begun) {
        budget->has_begun = true;
        budget->balance_ns = budget->whole_ns = BALANCE_FIRST_NS;
    } else if (running_ns > budget->running_ns) {
        double payment_ns = (double)(running_ns - budget->running_ns) * max_pause_percent / 100;
        budget->balance_ns = paid_in(budget->balance_ns, payment_ns);
        budget->whole_ns = paid_in(budget->whole_ns, payment_ns);
    }
    budget->running_ns = running_ns;
    return budget->balance_ns > reserve_ns && budget->whole_ns > -PAUSE_DEBT_MAX_NS;
}

void pause_budget_spend(struct pause_budget *budget, uint64_t pause_ns)
{
    budget->balance_ns -=
        (int64_t)(pause_ns < PAUSE_COUNTED_MAX_NS ? pause_ns : PAUSE_COUNTED_MAX_NS);
    budget->whole_ns -= (int64_t)pause_ns;
}
