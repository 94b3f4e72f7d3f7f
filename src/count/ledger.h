/* Divides a thread's time among its samples.
 *
 * A tick sees what a thread does at one moment; how long it was on a CPU since the last one, and
 * how long it waited for one, the kernel knows to the nanosecond. So a thread has three accounts:
 * running, runnable, and the rest, in which it slept. What passes is booked to them by the kernel's
 * figures, and a sample takes all that is owed to the account of the state that it found. Each
 * account adds up to the true time, also where ticks find one state more often than it is: a
 * sampler that wakes up on a busy machine takes the CPU from somebody. Only how an account is
 * divided among its stacks is by sampling. */
#ifndef FGPROF_COUNT_LEDGER_H
#define FGPROF_COUNT_LEDGER_H

#include "proc/activity.h"
#include "proc/thread_state.h"

#include <stdint.h>

enum account {
    ACCOUNT_RUNNING,
    ACCOUNT_RUNNABLE,
    ACCOUNT_ASLEEP,
    ACCOUNT_COUNT,
};

struct ledger {
    uint64_t booked_ns;               /* CLOCK_MONOTONIC: time up to here is in the accounts */
    bool has_activity;                /* there are figures of the kernel's for that moment: */
    uint64_t running_ns, waiting_ns;  /* as in struct activity */
    uint64_t owed_ns[ACCOUNT_COUNT];  /* not yet given to a sample */
    uint64_t given_ns[ACCOUNT_COUNT]; /* to samples, in whole */
    uint64_t given_ticks[ACCOUNT_COUNT];
    bool has_sample[ACCOUNT_COUNT];
    uint32_t last_sample[ACCOUNT_COUNT]; /* where the account's last sample is counted */
};

struct share {
    uint64_t ticks, time_ns;
};

/* The account of samples of this state. */
enum account ledger_account(enum thread_state state);

/* Time begins at `now_ns`, when the kernel's figures were these; NULL: they are not known. */
void ledger_begin(struct ledger *ledger, uint64_t now_ns, const struct activity *activity);

/* Books the time up to `now_ns`. `activity` is NULL where it is not known, or has no times. Without
 * figures for both ends of the time, all of it goes to `account`, that of the state which the
 * thread is in now. Time that was booked before is not booked again. */
void ledger_book(struct ledger *ledger, uint64_t now_ns, const struct activity *activity,
                 enum account account);

/* Gives a sample what is owed to its account. `sample` is its place. Ticks are the whole periods
 * that the account has given, less those that it gave before. */
struct share ledger_take(struct ledger *ledger, enum account account, uint64_t period_ns);
void ledger_note_sample(struct ledger *ledger, enum account account, uint32_t sample);

/* Whether any account has. */
bool ledger_has_sample(const struct ledger *ledger);
bool ledger_owes(const struct ledger *ledger);

/* The account whose last sample takes what is left of this one at a thread's end: one that is like
 * it, if it may be. -1: none has a sample. */
int ledger_heir(const struct ledger *ledger, enum account account);

/* At a thread's end: what is still owed goes to the last sample of its account, or else of another;
 * so do the ticks that only the accounts' parts of one make up together. `carry_ns` is what is left
 * of the threads that ended before, less than a tick, and takes in what is left of this one: so,
 * over many whose time is no whole number of ticks, none are lost. NULL: nothing is taken over.
 * Fills in up to ACCOUNT_COUNT shares with the samples that they are for, and returns how many. 0
 * where there was no sample at all. */
struct settlement {
    uint32_t sample;
    struct share share;
};
unsigned ledger_settle(struct ledger *ledger, uint64_t period_ns, uint64_t *carry_ns,
                       struct settlement ret_settlements[ACCOUNT_COUNT]);

#endif
