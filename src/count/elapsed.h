/* Elapsed time: each instant of a process is divided among its threads, so that all of it adds up
 * to the seconds for which the process was sampled.
 *
 * The rule. An instant belongs, in equal parts, to the threads that run then. If none runs, to
 * those that wait for a CPU; if none does, to those that are blocked; if there is none, to those
 * whose wait ends within a second of its beginning. Otherwise nothing happens: the process is idle.
 * A thread is blocked in uninterruptible sleep, and while it waits for a lock that a sampled thread
 * holds: then its part belongs to the end of the chain, that is, to the last thread of its own
 * process that it waits for, directly or not. Waiting for a thread to exit does not count as
 * blocked: many a main thread always waits for others to exit, and these may well be idle.
 *
 * What is known. The kernel's account says to the nanosecond how long each thread was awake, that
 * is, ran or waited for a CPU, but not together with which other threads. A tick, at a random
 * moment, finds which threads are awake together. Both are used:
 *
 * - A thread is given the time that it was awake by its account, times its mean share of an instant
 *   at the ticks that found it awake: a ratio estimator, whose bias falls with the number of ticks
 *   n as 1/n, while its error falls as 1/sqrt(n). Without the account, that time would be as
 *   uncertain as the number of ticks. If the share stays the same, as for a thread that is alone,
 *   there is no error at all.
 * - How many of the threads that a tick found awake are running is estimated from their recent
 *   accounts: from P, the sum of the running parts of their awake time. They run on n CPUs: as many
 *   as there are such threads, or as the process may use, if that is fewer. Each of these CPUs is
 *   assumed to be theirs for P/n of the time, independently of the others; so none of them runs for
 *   (1 - P/n)^n of the time. If the process has the CPUs to itself, or if there is one thread, or
 *   one CPU, that is exact.
 * - The rest of the process's time is divided among the waits by the ticks that found no thread
 *   awake. Whether a wait ends within a second is known only later, so a tick is divided some time
 *   after it.
 *
 * A tick's number is that of its period: one is due in each period, and a late tick stands for
 * those that were missed before it. */
#ifndef FGPROF_COUNT_ELAPSED_H
#define FGPROF_COUNT_ELAPSED_H

#include "count/ledger.h"
#include "count/stack_table.h"

/* One thread. Zeroed at first. */
struct elapsed_thread {
    double ran_ns, waited_ns; /* for a CPU, of late: both are halved as they grow */
    double awake_ns;          /* how long it was awake in all, by its account; and by ticks: */
    double found_ns;          /* how long they found it awake, */
    double own_ns;            /* and how much of the process's time was its own then */
    uint64_t given_ns;        /* of awake_ns, what was its own */
    /* At the last tick that found it awake: which part of the instant belongs to a thread that ran,
     * and to one that waited for a CPU. */
    double of_running, of_runnable;
    /* What it is owed for running: the kernel adds a wait for a CPU only when it ends, and so after
     * the running time that came before it. */
    double unpaid_ns;
};

/* The threads that one tick found awake. Zeroed at first. */
struct elapsed_instant {
    size_t threads;
    double running; /* how many of them ran, on average: P */
};

/* A wait that has a part in ticks. */
struct elapsed_wait {
    uint64_t number; /* in the order in which they were added, from 1 */
    uint32_t sample; /* in the stack table */
    uint64_t first_tick, last_tick;
    bool is_blocked; /* so that it comes before others, and may be of any length */
};

#define ELAPSED_OPEN UINT64_MAX /* the last tick of a wait that continues */

/* One process. Zeroed at first. */
struct elapsed {
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; end_ns 0: it is still sampled */
    uint64_t period_ns;
    unsigned cpus;              /* that it may use */
    uint64_t told_tick;         /* known up to here, and */
    uint64_t shared_tick;       /* shared out up to here; between them: */
    bool *found_none;           /* by tick number: whether it found no thread awake */
    size_t kept_ticks;          /* how many of these are kept */
    uint64_t pending;           /* how many of these found none */
    struct elapsed_wait *waits; /* by number */
    size_t wait_count, wait_capacity;
    uint64_t waits_added;
    uint32_t end_epoch;  /* the stack table's when it ended */
    bool is_settled;     /* its samples are scaled to its total: see elapsed_settle */
    uint64_t settled_ns; /* that total, and those of processes that were joined to it */
    uint64_t idle_ticks; /* that belong to nobody */
    uint64_t awake_ticks, awake_instances; /* ticks that found threads awake, and how many in all */
};

/* How long 0, 1, 2, ... threads of a process ran at once. Zeroed at first. */
#define PARALLELISM_MAX 256 /* the last row is for this many or more */
struct parallelism {
    double ticks[PARALLELISM_MAX + 1]; /* row 0 is not used: it is the rest */
};

void elapsed_begin(struct elapsed *process, uint64_t begin_ns, uint64_t period_ns, unsigned cpus);
void elapsed_free(struct elapsed *process);

/* Books a thread's account since the last call. *ret_running_ns and *ret_runnable_ns: how much more
 * of the process's time belongs to the thread now. */
void elapsed_book(const struct elapsed *process, struct elapsed_thread *thread, uint64_t ran_ns,
                  uint64_t waited_ns, uint64_t *ret_running_ns, uint64_t *ret_runnable_ns);

/* The same for a thread that is gone and that no tick found awake. It is assumed to have been awake
 * together with as many others as the process's threads on average. */
void elapsed_book_rest(const struct elapsed *process, struct elapsed_thread *thread,
                       uint64_t *ret_running_ns, uint64_t *ret_runnable_ns);

/* The thread's part of its process's time relative to the time in an account, at the last tick that
 * found it awake; 1 for its sleep. */
double elapsed_part(const struct elapsed_thread *thread, enum account account);

/* Add a thread that a tick found awake and, once all are added, give it its share. The tick stands
 * for `ticks` ticks. */
void elapsed_add_awake(struct elapsed_instant *instant, const struct elapsed_thread *thread);
void elapsed_share(const struct elapsed *process, const struct elapsed_instant *instant,
                   uint64_t ticks, struct elapsed_thread *thread);

/* Tick number `tick` stands for `ticks` ticks and found these threads awake; the `idle_ticks` ticks
 * before it found none. Ticks come in order. Divides old ticks among samples of `table`. Returns 0
 * or -ENOMEM. */
int elapsed_pass(struct elapsed *process, struct stack_table *table, uint64_t tick,
                 uint64_t idle_ticks, uint64_t ticks, const struct elapsed_instant *instant);

/* Adds an open wait of a blocked thread, or a short wait that has ended, under the next number.
 * Returns 0 or -ENOMEM. */
int elapsed_add_wait(struct elapsed *process, const struct elapsed_wait *wait,
                     uint64_t *ret_number);

/* Ends an open wait at `last_tick`. */
void elapsed_end_wait(struct elapsed *process, uint64_t number, uint64_t last_tick);

/* Moves the wait's ticks that are not divided yet to this sample. */
void elapsed_place_wait(struct elapsed *process, uint64_t number, uint32_t sample);

/* Whether a wait from the first to the last of these ticks is short. */
bool elapsed_is_short(const struct elapsed *process, uint64_t first_tick, uint64_t last_tick);

/* The process is no longer sampled: shares out all ticks that are left. */
void elapsed_end(struct elapsed *process, struct stack_table *table, uint64_t end_ns);

/* Fixes the elapsed time of processes that have ended. Samples hold shares that mean nothing
 * without their process's total; this scales them to that total, so that samples of several
 * processes can be added up. `processes` are those of the table, and `rows` keeps the ended ones.
 * Returns 0, or -ENOMEM, and then nothing has changed. */
int elapsed_settle(struct stack_table *table, struct elapsed *processes,
                   const struct renumber *rows);

/* Moves the time of a settled process to another settled one. */
void elapsed_join(struct elapsed *to, struct elapsed *from);

/* Counts `ticks` at which these threads were awake. */
void parallelism_add(struct parallelism *parallelism, const struct elapsed *process,
                     const struct elapsed_instant *instant, uint64_t ticks);

/* The result: how much of its process's time, up to `until_ns` if it is still sampled, each of the
 * table's samples has, and how much no sample has. `processes` are those of the table. What ticks
 * say is fitted to what the accounts have left, so that each process's time is distributed
 * completely, to the nanosecond. Returns 0 or -ENOMEM. */
int elapsed_divide(const struct stack_table *table, const struct elapsed *processes,
                   uint64_t until_ns, uint64_t *ret_sample_ns, uint64_t *ret_idle_ns);

/* The same for parallelism: divides the time in which any thread ran, and adds how long none did.
 * The rows then add up to `all_ns`. */
void parallelism_divide(const struct parallelism *parallelism, uint64_t all_ns, uint64_t running_ns,
                        uint64_t ret_ns[PARALLELISM_MAX + 1]);

#endif
