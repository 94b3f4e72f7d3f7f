#include "count/ledger.h"

#include <stddef.h>

/* Sleep of this many ticks is seen by one of them, if its parts are not shorter than this. */
#define UNSEEN_TICKS 16
#define SEEN_SLEEP_NS 1000000

enum account ledger_account(enum thread_state state)
{
    switch (state) {
    case THREAD_RUNNING:
        return ACCOUNT_RUNNING;
    case THREAD_RUNNABLE:
        return ACCOUNT_RUNNABLE;
    default:
        return ACCOUNT_ASLEEP;
    }
}

/* Moves what the kernel counted since `*known_ns` to the account, up to `*left_ns`. The rest is
 * left for the next time, because the two clocks are not read at the same moment. */
static void book(uint64_t *known_ns, uint64_t now_ns, uint64_t *left_ns, uint64_t *owed_ns)
{
    uint64_t counted_ns = now_ns > *known_ns ? now_ns - *known_ns : 0;
    if (counted_ns > *left_ns)
        counted_ns = *left_ns;
    *known_ns += counted_ns;
    *left_ns -= counted_ns;
    *owed_ns += counted_ns;
}

void ledger_begin(struct ledger *ledger, uint64_t now_ns, const struct activity *activity)
{
    ledger_free(ledger);
    *ledger = (struct ledger){.booked_ns = now_ns};
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        ledger->windows[i].begin_ns = now_ns;
    ledger->has_activity = activity && !activity->counts_ends;
    if (ledger->has_activity) {
        ledger->running_ns = activity->running_ns;
        ledger->waiting_ns = activity->waiting_ns;
        ledger->switches = ledger->asleep_switches = activity->switches;
    }
}

void ledger_free(struct ledger *ledger)
{
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        window_free(&ledger->windows[i]);
}

void ledger_book(struct ledger *ledger, uint64_t now_ns, const struct activity *activity,
                 enum account account)
{
    uint64_t left_ns = now_ns > ledger->booked_ns ? now_ns - ledger->booked_ns : 0;
    bool has_times = activity && !activity->counts_ends;
    /* A smaller figure is another thread's: a thread that called execve took over this id. */
    if (has_times &&
        (activity->running_ns < ledger->running_ns || activity->waiting_ns < ledger->waiting_ns ||
         activity->switches < ledger->switches))
        ledger->has_activity = false;
    if (has_times && ledger->has_activity) {
        book(&ledger->running_ns, activity->running_ns, &left_ns,
             &ledger->owed_ns[ACCOUNT_RUNNING]);
        book(&ledger->waiting_ns, activity->waiting_ns, &left_ns,
             &ledger->owed_ns[ACCOUNT_RUNNABLE]);
        ledger->owed_ns[ACCOUNT_ASLEEP] += left_ns;
    } else {
        ledger->owed_ns[account] += left_ns;
    }
    if (has_times && !ledger->has_activity) {
        ledger->running_ns = activity->running_ns;
        ledger->waiting_ns = activity->waiting_ns;
        ledger->asleep_switches = activity->switches;
    }
    if (has_times) {
        ledger->late_ns =
            activity->running_ns - ledger->running_ns + activity->waiting_ns - ledger->waiting_ns;
        ledger->switches = activity->switches;
    }
    ledger->has_activity = has_times;
    if (now_ns > ledger->booked_ns)
        ledger->booked_ns = now_ns;
}

/* Gives a part of what the account owes. */
static struct share give(struct ledger *ledger, enum account account, uint64_t time_ns,
                         uint64_t part_ns, uint64_t period_ns)
{
    struct share share = {.time_ns = time_ns, .part_ns = part_ns};
    ledger->owed_ns[account] -= time_ns;
    ledger->part_ns[account] -= part_ns;
    ledger->given_ns[account] += time_ns;
    share.ticks = ledger->given_ns[account] / period_ns - ledger->given_ticks[account];
    ledger->given_ticks[account] += share.ticks;
    return share;
}

int ledger_add(struct ledger *ledger, enum account account, uint32_t sample, uint64_t ticks,
               double part)
{
    return window_add(&ledger->windows[account], sample, ticks, part);
}

void ledger_note_asleep(struct ledger *ledger, uint64_t owed_before_ns)
{
    uint64_t owed_ns = ledger->owed_ns[ACCOUNT_ASLEEP];
    ledger->slept_ns += owed_ns > owed_before_ns ? owed_ns - owed_before_ns : 0;
}

uint64_t ledger_deny_sleep(struct ledger *ledger, uint64_t period_ns)
{
    uint64_t owed_ns = ledger->owed_ns[ACCOUNT_ASLEEP];
    uint64_t kept_ns = ledger->late_ns + ledger->slept_ns;
    uint64_t denied_ns = owed_ns > kept_ns ? owed_ns - kept_ns : 0;
    uint64_t sleeps_max = ledger->switches - ledger->asleep_switches + 1;
    if (!ledger->has_activity || denied_ns / period_ns < UNSEEN_TICKS ||
        denied_ns / sleeps_max < SEEN_SLEEP_NS)
        return 0;
    ledger->owed_ns[ACCOUNT_ASLEEP] -= denied_ns;
    ledger->owed_ns[ACCOUNT_RUNNING] += denied_ns;
    ledger->asleep_switches = ledger->switches;
    return denied_ns;
}

bool ledger_is_due(const struct ledger *ledger, enum account account)
{
    return window_is_over(&ledger->windows[account], ledger->booked_ns);
}

unsigned ledger_close(struct ledger *ledger, enum account account, uint64_t period_ns,
                      struct settlement ret_settlements[WINDOW_ROWS_MAX])
{
    struct window *window = &ledger->windows[account];
    struct window_part parts[WINDOW_ROWS_MAX];
    uint64_t owed_ns = ledger->owed_ns[account];
    if (!window->count || (!owed_ns && window->count < WINDOW_ROWS_MAX))
        return 0;
    if (account == ACCOUNT_ASLEEP) {
        ledger->slept_ns = 0;
        ledger->asleep_switches = ledger->switches;
    }
    unsigned count =
        window_close(window, ledger->booked_ns, owed_ns, ledger->part_ns[account], parts);
    for (unsigned i = 0; i < count; i++)
        ret_settlements[i] = (struct settlement){
            parts[i].sample, parts[i].ticks,
            give(ledger, account, parts[i].time_ns, parts[i].part_ns, period_ns)};
    return count;
}

void ledger_note_sample(struct ledger *ledger, enum account account, uint32_t sample)
{
    ledger->has_sample[account] = true;
    ledger->last_sample[account] = sample;
}

bool ledger_has_sample(const struct ledger *ledger)
{
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++) {
        if (ledger->has_sample[i])
            return true;
    }
    return false;
}

bool ledger_owes(const struct ledger *ledger)
{
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++) {
        if (ledger->owed_ns[i])
            return true;
    }
    return false;
}

int ledger_heir(const struct ledger *ledger, enum account account)
{
    static const enum account heirs[ACCOUNT_COUNT][ACCOUNT_COUNT] = {
        [ACCOUNT_RUNNING] = {ACCOUNT_RUNNING, ACCOUNT_RUNNABLE, ACCOUNT_ASLEEP},
        [ACCOUNT_RUNNABLE] = {ACCOUNT_RUNNABLE, ACCOUNT_RUNNING, ACCOUNT_ASLEEP},
        [ACCOUNT_ASLEEP] = {ACCOUNT_ASLEEP, ACCOUNT_RUNNABLE, ACCOUNT_RUNNING},
    };
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++) {
        if (ledger->has_sample[heirs[account][i]])
            return (int)heirs[account][i];
    }
    return -1;
}

unsigned ledger_settle(struct ledger *ledger, uint64_t period_ns, uint64_t *carry_ns,
                       struct settlement ret_settlements[ACCOUNT_COUNT])
{
    unsigned count = 0;
    uint64_t given_ns = 0, given_ticks = 0;
    enum account largest = ACCOUNT_RUNNING;
    struct share *share_of_largest = NULL;
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++) {
        int heir = ledger_heir(ledger, i);
        if (heir < 0)
            return 0;
        if ((unsigned)heir != i) {
            ledger->owed_ns[heir] += ledger->owed_ns[i];
            ledger->part_ns[heir] += ledger->part_ns[i];
            ledger->owed_ns[i] = ledger->part_ns[i] = 0;
        }
    }
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++) {
        if (!ledger->has_sample[i])
            continue;
        ret_settlements[count++] =
            (struct settlement){ledger->last_sample[i], 0,
                                give(ledger, i, ledger->owed_ns[i], ledger->part_ns[i], period_ns)};
        given_ns += ledger->given_ns[i];
        given_ticks += ledger->given_ticks[i];
        if (!share_of_largest || ledger->given_ns[i] >= ledger->given_ns[largest]) {
            largest = i;
            share_of_largest = &ret_settlements[count - 1].share;
        }
    }
    uint64_t time_ns = given_ns + (carry_ns ? *carry_ns : 0);
    uint64_t missing = time_ns / period_ns - given_ticks;
    if (carry_ns)
        *carry_ns = time_ns % period_ns;
    ledger->given_ticks[largest] += missing;
    share_of_largest->ticks += missing;
    return count;
}
