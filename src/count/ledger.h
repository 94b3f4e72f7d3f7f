/* Divides a thread's time among its samples.
 *
 * A tick sees what a thread does at one moment. The kernel knows to the nanosecond how long the
 * thread was on a CPU since the last tick, and how long it waited for one. So a thread has three
 * accounts: running, runnable, and sleeping, which gets the rest. Passing time is booked to them by
 * the kernel's figures, and a sample belongs to the account of the state that it found. Each
 * account adds up to the true time, even if ticks find one state more often than it occurs: a
 * sampler that wakes up on a busy machine takes the CPU from another thread. Sampling decides only
 * how an account is divided among its stacks.
 *
 * Samples and booked time come in any order. Each account collects its samples in a window, and
 * when the window closes, they are given all that the account owes. An account that has no sample
 * keeps owing its time; samples to which nothing is owed wait. */
#ifndef FGPROF_COUNT_LEDGER_H
#define FGPROF_COUNT_LEDGER_H

#include "count/window.h"
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
    bool has_activity;                /* the kernel's figures for that moment are known: */
    uint64_t running_ns, waiting_ns;  /* as in struct activity */
    uint64_t switches;                /* likewise */
    uint64_t late_ns;                 /* what they count of time that was booked as sleep */
    uint64_t asleep_switches;         /* when nothing was owed as sleep */
    uint64_t slept_ns;                /* of what is owed as sleep: ledger_note_asleep */
    uint64_t owed_ns[ACCOUNT_COUNT];  /* not yet given to a sample */
    uint64_t given_ns[ACCOUNT_COUNT]; /* given to samples in total */
    uint64_t given_ticks[ACCOUNT_COUNT];
    uint64_t part_ns[ACCOUNT_COUNT]; /* of what is owed, the thread's part of its process's time:
                                        see count/elapsed.h */
    struct window windows[ACCOUNT_COUNT];
    bool has_sample[ACCOUNT_COUNT];
    uint32_t last_sample[ACCOUNT_COUNT]; /* where the account's last sample is counted */
};

struct share {
    uint64_t ticks, time_ns;
    uint64_t part_ns;
};

/* The account for samples in this state. */
enum account ledger_account(enum thread_state state);

/* Resets the accounts at `now_ns`, with the kernel's figures for that moment; NULL: not known. */
void ledger_begin(struct ledger *ledger, uint64_t now_ns, const struct activity *activity);

/* Frees the windows. */
void ledger_free(struct ledger *ledger);

/* Books the time up to `now_ns`. `activity` is NULL if it is not known or has no times. Without
 * figures for both ends of the time, all of it goes to `account`, the account of the thread's
 * present state. Time that is already booked is not booked again. */
void ledger_book(struct ledger *ledger, uint64_t now_ns, const struct activity *activity,
                 enum account account);

/* Adds a sample that stands for `ticks` to the account's window, which must not be full. `part` is
 * the part of the process's time, as in window_add. Returns 0 or -ENOMEM. */
int ledger_add(struct ledger *ledger, enum account account, uint32_t sample, uint64_t ticks,
               double part);

/* Marks what the sleeping account owes beyond `owed_before_ns` as sleep: a tick saw it, or there
 * was no tick that could show otherwise. */
void ledger_note_asleep(struct ledger *ledger, uint64_t owed_before_ns);

/* Moves the rest of what the sleeping account owes to the running account, if it can't be sleep.
 * The kernel's figures omit what interrupts and the hypervisor took from a running thread
 * (update_rq_clock_task in its kernel/sched/core.c), so this time looks like sleep: a thread that
 * computed for hours would owe minutes to the first wait that is found. Some tick would have found
 * part of that much sleep, unless it consisted of short sleeps, and then the thread had as many
 * switches. Returns how much it moved. */
uint64_t ledger_deny_sleep(struct ledger *ledger, uint64_t period_ns);

/* Whether the account's window should be closed now. */
bool ledger_is_due(const struct ledger *ledger, enum account account);

/* What a sample is given. Its ticks are the whole periods that its account has given so far, minus
 * those that it gave before. */
struct settlement {
    uint32_t sample;
    uint32_t window_ticks; /* for which the sample's row stood */
    struct share share;
};

/* Gives the samples of the account's window all that the account owes. Returns how many settlements
 * there are, 0 if the window stays open. */
unsigned ledger_close(struct ledger *ledger, enum account account, uint64_t period_ns,
                      struct settlement ret_settlements[WINDOW_ROWS_MAX]);

/* Sets the sample that gets the rest of the account at the thread's end. */
void ledger_note_sample(struct ledger *ledger, enum account account, uint32_t sample);

/* Whether any account has a sample. */
bool ledger_has_sample(const struct ledger *ledger);
bool ledger_owes(const struct ledger *ledger);

/* The account whose last sample gets the rest of this account when the thread ends: a similar one
 * if possible. -1: none has a sample. */
int ledger_heir(const struct ledger *ledger, enum account account);

/* When a thread ends and all windows are closed, gives what is still owed to the last sample of its
 * account, or else of another. Ticks that only the fractions of several accounts make up together
 * are given too. `carry_ns` holds the remainder, less than a tick, of the threads that ended
 * before; the remainder of this one is added to it, so that no ticks are lost over many threads
 * whose time is not a whole number of ticks. NULL: nothing is carried over. Fills in up to
 * ACCOUNT_COUNT shares with their samples, and returns how many; 0 if there was no sample at all.
 */
unsigned ledger_settle(struct ledger *ledger, uint64_t period_ns, uint64_t *carry_ns,
                       struct settlement ret_settlements[ACCOUNT_COUNT]);

#endif
