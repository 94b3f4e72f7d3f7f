#include "worker/account.h"

_Static_assert((int)TIMELINE_ACCOUNTS == (int)ACCOUNT_COUNT, "a timeline has a ledger's accounts");

static const struct activity *activity_of(const struct reading *reading)
{
    return reading->has_activity ? &reading->activity : NULL;
}

void account_begin(struct thread_account *account, const struct reading *begin)
{
    account->ledger = (struct ledger){0};
    account->sleeps_on = false;
    ledger_begin(&account->ledger, begin->at_ns, activity_of(begin));
}

void account_book(struct thread_account *account, struct results *results, pid_t tid,
                  const struct reading *reading, enum account kind)
{
    struct ledger *ledger = &account->ledger;
    uint64_t from_ns = ledger->booked_ns, booked_ns[ACCOUNT_COUNT];
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        booked_ns[i] = ledger->owed_ns[i];
    ledger_book(ledger, reading->at_ns, activity_of(reading), kind);
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        booked_ns[i] = ledger->owed_ns[i] - booked_ns[i];
    results->counts.running_ns += booked_ns[ACCOUNT_RUNNING];
    timeline_book(&results->timeline, &account->timeline, (uint32_t)tid, from_ns, booked_ns);
}
