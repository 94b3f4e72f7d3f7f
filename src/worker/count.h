/* Counting: what is owed to a thread's samples, for the stack that was found. All functions return
 * 0 or -ENOMEM. */
#ifndef FGPROF_WORKER_COUNT_H
#define FGPROF_WORKER_COUNT_H

#include "worker/threads.h"
#include "wait/facts.h"

/* What all is counted with. */
struct counter {
    struct results *results;
    uint64_t period_ns;
    bool tells_threads_apart;
    struct wait_list *waits; /* for a dump, in which each thread is counted once; else NULL */
};

/* Books the time that an observation tells of. What the thread slept on since its last sample is
 * given to that. */
void count_book(const struct counter *counter, const struct observation *observation,
                struct counted_thread *thread);

/* Counts a stack. `program` is the observation's. */
int count_stack(const struct counter *counter, const struct observation *observation,
                struct counted_thread *thread, struct program_tables *program,
                const struct stack *stack);

/* The thread will be observed again: the stack is counted only if that comes to nothing. */
int count_later(const struct counter *counter, const struct observation *observation,
                struct counted_thread *thread, struct program_tables *program,
                const struct stack *stack);

/* Nothing can be made of what was observed: its program is gone. */
int count_without_stack(const struct counter *counter, const struct observation *observation,
                        struct counted_thread *thread);

/* The thread could not be observed: counts what it ran, or wanted to, for no stack. */
int count_assumed(const struct counter *counter, const struct observation *observation,
                  struct counted_thread *thread);

/* The thread is gone, or the recording at its end: its time is counted for where it was seen last,
 * or for no stack if it was not seen. */
int count_gone(const struct counter *counter, const struct observation *observation,
               struct counted_thread *thread);

#endif
