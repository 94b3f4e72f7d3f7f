/* Booking: up to when a thread's time is known, and in what state it was seen then. */
#ifndef FGPROF_WORKER_ACCOUNT_H
#define FGPROF_WORKER_ACCOUNT_H

#include "count/ledger.h"
#include "count/timeline.h"
#include "observe/observation.h"
#include "worker/results.h"

/* Zeroed at first. */
struct thread_account {
    struct ledger ledger;
    struct timeline_cursor timeline;
    uint32_t last_sample; /* in the stack table: its last stack's sample */
    bool sleeps_on;       /* it was asleep for that sample, and is not known to have moved since */
    bool is_dumped;       /* a dump has its stack */
};

/* Starts the thread's time at `begin`. */
void account_begin(struct thread_account *account, const struct reading *begin);

/* Books the time up to a reading: by the kernel's count, or else to `kind`. */
void account_book(struct thread_account *account, struct results *results, pid_t tid,
                  const struct reading *reading, enum account kind);

#endif
