#include "worker/account.h"

_Static_assert((int)TIMELINE_ACCOUNTS == (int)ACCOUNT_COUNT, "a timeline has a ledger's accounts");

static const struct activity *activity_of(const struct reading *reading)
{
    return reading->has_activity ? &reading->activity : NULL;
}

void account_begin(struct thread_account *account, const struct reading *begin)
{
    account->sleeps_on = account->is_woken = false;
    account->told = *begin;
    account->sleeps = (struct thread_sleeps){0};
    ledger_begin(&account->ledger, begin->at_ns, activity_of(begin));
}

static bool has_times(const struct reading *reading)
{
    return reading->has_activity && !reading->activity.counts_ends;
}

/* Its part of the process's time is given for the time that it was awake. A wait for a CPU is told
 * when it has ended: the ledger has booked its beginning as sleep by then, and so books less of it,
 * but here all of it counts. */
static void book_part(struct thread_account *account, const struct elapsed *process,
                      const struct reading *reading, const uint64_t booked_ns[ACCOUNT_COUNT])
{
    const struct activity *before = &account->told.activity, *now = &reading->activity;
    struct ledger *ledger = &account->ledger;
    uint64_t ran_ns = booked_ns[ACCOUNT_RUNNING], waited_ns = booked_ns[ACCOUNT_RUNNABLE];
    uint64_t running_ns, runnable_ns;
    if (has_times(reading) && has_times(&account->told) && now->running_ns >= before->running_ns &&
        now->waiting_ns >= before->waiting_ns) {
        ran_ns = now->running_ns - before->running_ns;
        waited_ns = now->waiting_ns - before->waiting_ns;
    }
    if (has_times(reading))
        account->told = *reading;
    elapsed_book(process, &account->elapsed, ran_ns, waited_ns, &running_ns, &runnable_ns);
    ledger->part_ns[ACCOUNT_RUNNING] += running_ns;
    ledger->part_ns[ACCOUNT_RUNNABLE] += runnable_ns;
}

void account_end(struct thread_account *account, const struct results *results, uint32_t process)
{
    uint64_t running_ns, runnable_ns;
    elapsed_book_rest(&results->elapsed[process], &account->elapsed, &running_ns, &runnable_ns);
    account->ledger.part_ns[ACCOUNT_RUNNING] += running_ns;
    account->ledger.part_ns[ACCOUNT_RUNNABLE] += runnable_ns;
}

void account_book(struct thread_account *account, struct results *results, uint32_t process,
                  pid_t tid, const struct reading *reading, enum account kind)
{
    struct ledger *ledger = &account->ledger;
    uint64_t from_ns = ledger->booked_ns, booked_ns[ACCOUNT_COUNT];
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        booked_ns[i] = ledger->owed_ns[i];
    ledger_book(ledger, reading->at_ns, activity_of(reading), kind);
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++) {
        booked_ns[i] = ledger->owed_ns[i] - booked_ns[i];
        results->counts.owed_ns += booked_ns[i];
    }
    results->counts.running_ns += booked_ns[ACCOUNT_RUNNING];
    book_part(account, &results->elapsed[process], reading, booked_ns);
    timeline_book(&results->timeline, &account->timeline, (uint32_t)tid, from_ns, booked_ns);
}
