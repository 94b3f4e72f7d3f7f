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

/* Gives the thread its part of the process's time for the time that it was awake. The kernel adds a
 * wait for a CPU only when it ends. By then the ledger may have booked the wait's beginning as
 * sleep; here all of it counts. */
static void book_part(struct thread_account *account, const struct elapsed *process,
                      const struct reading *reading, const uint64_t booked_ns[ACCOUNT_COUNT])
{
    const struct activity *before = &account->told.activity, *now = &reading->activity;
    struct ledger *ledger = &account->ledger;
    uint64_t ran_ns = booked_ns[ACCOUNT_RUNNING], waited_ns = booked_ns[ACCOUNT_RUNNABLE];
    uint64_t running_ns, runnable_ns;
    if (reading_has_times(reading) && reading_has_times(&account->told) &&
        now->running_ns >= before->running_ns && now->waiting_ns >= before->waiting_ns) {
        ran_ns = now->running_ns - before->running_ns;
        waited_ns = now->waiting_ns - before->waiting_ns;
    }
    if (reading_has_times(reading))
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

void sleeps_note_stop(struct thread_sleeps *sleeps, const struct observation *observation)
{
    /* If it had gone to sleep, the stop woke it, too. */
    if (observation->evidence == EVIDENCE_STOPPED)
        sleeps->stops += thread_state_waits(observation->state) ? 2 : 1;
}

/* The fraction of the switches since the last reading that were preemptions. The first reading
 * covers the thread's whole life. */
static double preempted_part(const struct thread_sleeps *sleeps,
                             const struct observation *observation)
{
    uint64_t switches = observation->now.activity.switches,
             preemptions = observation->wait.preemptions;
    if (!observation->wait.has_preemptions ||
        (sleeps->has_preemptions && preemptions < sleeps->read_preemptions))
        return sleeps->preempted_part;
    if (sleeps->has_preemptions) {
        switches -= sleeps->read_switches;
        preemptions -= sleeps->read_preemptions;
    }
    return preemptions < switches ? (double)preemptions / (double)switches : 1;
}

/* Begins a new count from this reading. */
static void start_anew(struct thread_sleeps *sleeps, const struct observation *observation,
                       double part, double owed)
{
    sleeps->has_preemptions = observation->wait.has_preemptions;
    sleeps->read_switches = observation->now.activity.switches;
    sleeps->read_preemptions = observation->wait.preemptions;
    sleeps->preempted_part = part;
    sleeps->owed = owed;
    sleeps->stops = sleeps->counted = 0;
}

/* Whether the counts continue those of the last sleep that was found. */
static bool goes_on(const struct thread_sleeps *sleeps, const struct reading *now)
{
    return sleeps->is_known && now->has_activity &&
           sleeps->counts_ends == now->activity.counts_ends &&
           sleeps->switches <= now->activity.switches;
}

static uint64_t take_first(struct thread_sleeps *sleeps, const struct observation *observation)
{
    *sleeps = (struct thread_sleeps){
        .is_known = observation->now.has_activity,
        .counts_ends = observation->now.activity.counts_ends,
        .switches = observation->now.activity.switches,
    };
    start_anew(sleeps, observation, preempted_part(sleeps, observation), 0);
    return 1;
}

uint64_t sleeps_take(struct thread_sleeps *sleeps, const struct observation *observation)
{
    uint64_t switches = observation->now.activity.switches;
    if (!goes_on(sleeps, &observation->now))
        return take_first(sleeps, observation);
    if (switches == sleeps->switches)
        return 0;
    double part = preempted_part(sleeps, observation);
    double slept = (double)(switches - sleeps->read_switches) * (1 - part) - (double)sleeps->stops;
    double owed = sleeps->owed + slept - (double)sleeps->counted;
    uint64_t count = owed > 1 ? (uint64_t)(owed + 0.5) : 1;
    sleeps->switches = switches;
    sleeps->counted += count;
    if (observation->wait.has_preemptions)
        start_anew(sleeps, observation, part, owed - (double)count);
    return count;
}
