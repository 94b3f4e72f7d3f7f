/* A thread's account: books its time by state, up to the last reading. */
#ifndef FGPROF_WORKER_ACCOUNT_H
#define FGPROF_WORKER_ACCOUNT_H

#include "count/elapsed.h"
#include "count/ledger.h"
#include "count/timeline.h"
#include "observe/observation.h"
#include "worker/results.h"
#include "worker/wakers.h"

/* How often a thread has slept, from the kernel's count of how often it was given a CPU.
 *
 * A thread that is found in a new sleep has slept once for each switch since the sleep that was
 * found before, except that it was also preempted, and stopped by us. The number of preemptions is
 * read only now and then: until then, the fraction of preemptions is assumed to be the same as
 * before, and the next reading corrects the difference. All these sleeps are counted where the
 * thread is found, because nothing shows where the others were: those in unseen places count for
 * places nearby. */

/* Zeroed at first. */
struct thread_sleeps {
    bool is_known; /* a sleep was found: */
    bool counts_ends;
    bool has_preemptions;
    uint64_t switches; /* the kernel's count at that sleep */
    /* When preemptions were last read, or else at the first sleep that was found: */
    uint64_t read_switches, read_preemptions;
    double preempted_part; /* of the switches up to then */
    double owed;           /* sleeps that were not counted by then; below 0: too many were */
    /* Since then: */
    uint64_t stops; /* switches that we made */
    uint64_t counted;
};

/* Notes that the thread was stopped by us, if it was. */
void sleeps_note_stop(struct thread_sleeps *sleeps, const struct observation *observation);

/* The thread was found asleep. Returns how many sleeps that stands for: 0 if it is the same sleep
 * as before, otherwise at least 1. */
uint64_t sleeps_take(struct thread_sleeps *sleeps, const struct observation *observation);

/* elapsed_ticks.c: a wait of the thread that ticks found. */
struct thread_wait {
    bool is_open; /* it is not known to have ended; else it is none: */
    bool is_uninterruptible;
    uint32_t process;    /* its number */
    uint32_t sample;     /* in the stack table */
    uint64_t first_tick; /* that found it */
    uint64_t switches;   /* the kernel's count, which is the same as long as it lasts */
    uint64_t number;     /* of its elapsed_wait; 0: it has none */
    /* While it waits for a lock that is held: the elapsed_wait at the end of the chain; 0: none. */
    uint64_t chain;
    uint32_t chain_sample;
};

/* Zeroed at first. */
struct thread_account {
    struct ledger ledger;
    struct timeline_cursor timeline;
    struct tick_cursor ticks;
    struct elapsed_thread elapsed;
    struct reading told; /* the last one that has times */
    struct thread_wait wait;
    struct thread_sleeps sleeps;
    struct thread_wakers wakers;
    uint32_t last_sample; /* in the stack table: its last stack's sample */
    bool sleeps_on;       /* it was asleep for that sample, and has not been seen elsewhere since */
    bool sleep_is_over;   /* it is known to have been woken since */
    bool is_woken;        /* it was, but has been woken, and is still there */
    uint64_t slept_ns;    /* when it was last seen asleep */
    /* owners_detect_deadlock: the thread that it waits for since then. */
    uint32_t owner_plus_1;  /* the number of the thread; 0: nobody is known */
    uint64_t owner_read_ns; /* CLOCK_MONOTONIC */
    bool owner_must_act;    /* the wait is for a lock or a thread: nobody else can end it */
    bool is_in_deadlock;    /* which was reported */
    /* The last wait that was found, if it has no owner yet: */
    uint32_t unowned_sample;
    uint64_t unowned_sleeps; /* that were counted there */
    uint32_t awake_sample;   /* the sample of when it was last seen running or about to: */
    uint64_t awake_at_ns;    /* CLOCK_MONOTONIC; 0: it was not */
    bool is_dumped;          /* a dump has its stack */
};

/* Starts the thread's time at `begin`. */
void account_begin(struct thread_account *account, const struct reading *begin);

/* Ends the account: gives the thread the rest of its part of the process's time. */
void account_end(struct thread_account *account, const struct results *results, uint32_t process);

/* Books the time up to a reading: by the kernel's count, or else to `kind`. `process` is a row
 * number. */
void account_book(struct thread_account *account, struct results *results, uint32_t process,
                  pid_t tid, const struct reading *reading, enum account kind);

#endif
