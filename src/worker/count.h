/* Counting: collects a thread's samples, and gives them the time that is booked. All functions that
 * return anything return 0 or -ENOMEM. */
#ifndef FGPROF_WORKER_COUNT_H
#define FGPROF_WORKER_COUNT_H

#include "worker/owners.h"
#include "wait/facts.h"
#include "worker/spans.h"

/* What all counting uses. */
struct counter {
    struct results *results;
    uint64_t period_ns;
    bool tells_threads_apart;
    struct channel *channel; /* for requests */
    struct owners *owners;
    struct span_options spans;
    struct wait_list *waits; /* for a dump, in which each thread is counted once; else NULL */
};

/* Books the time that an observation tells of. If the thread slept on since its last sample, that
 * is another one. */
int count_book(const struct counter *counter, const struct observation *observation,
               struct counted_thread *thread);

/* Notes what the labels of a copied thread say of its span. */
int count_span(const struct counter *counter, const struct observation *observation,
               struct counted_thread *thread, const struct span_sight *sight);

/* Counts a stack. `program` is the observation's. */
int count_stack(const struct counter *counter, const struct observation *observation,
                struct counted_thread *thread, struct program_tables *program,
                const struct stack *stack);

/* The thread has been woken where it was last seen, and waits for a CPU. */
int count_woken(const struct counter *counter, const struct observation *observation,
                struct counted_thread *thread);

/* The thread will be observed again: the stack is counted only if that comes to nothing. */
int count_later(const struct counter *counter, const struct observation *observation,
                struct counted_thread *thread, struct program_tables *program,
                const struct stack *stack);

/* The observation is of no use: its program is gone. */
int count_without_stack(const struct counter *counter, const struct observation *observation,
                        struct counted_thread *thread);

/* The thread could not be observed: counts the time that it ran, or wanted to run, without a
 * stack. */
int count_assumed(const struct counter *counter, const struct observation *observation,
                  struct counted_thread *thread);

/* The thread is gone, or the recording has ended: its time is counted where it was last seen, or
 * without a stack if it was never seen. */
int count_gone(const struct counter *counter, const struct observation *observation,
               struct counted_thread *thread);

/* The round is over, or more than that: counts the waits that were held until all of it was seen.
 */
int count_held(const struct counter *counter);

/* Gives the thread's samples all that is owed to them so far. */
void count_close(const struct counter *counter, struct counted_thread *thread);

#endif
