/* Counts samples, and gives them the time that is booked. All functions with a result return 0 or
 * -ENOMEM. */
#ifndef FGPROF_WORKER_COUNT_H
#define FGPROF_WORKER_COUNT_H

#include "worker/kernel_names.h"
#include "worker/means.h"
#include "worker/owners.h"
#include "wait/wait_list.h"
#include "worker/spans.h"

/* Books the time up to the observation. If the thread is still asleep since its last sample, counts
 * another one. */
int count_book(const struct means *means, const struct observation *observation,
               struct counted_thread *thread);

/* Updates the thread's span by its labels. */
int count_span(const struct means *means, const struct observation *observation,
               struct counted_thread *thread, const struct span_sight *sight);

/* Counts a stack. `program` is the observation's. */
int count_stack(const struct means *means, const struct observation *observation,
                struct counted_thread *thread, struct program_tables *program,
                const struct stack *stack);

/* The thread has been woken where it was last seen, and waits for a CPU. */
int count_woken(const struct means *means, const struct observation *observation,
                struct counted_thread *thread);

/* The thread will be observed again: keeps the stack in case that fails. */
int count_later(const struct means *means, const struct observation *observation,
                struct counted_thread *thread, struct program_tables *program,
                const struct stack *stack);

/* The observation can't be unwound, because its program is gone. */
int count_without_stack(const struct means *means, const struct observation *observation,
                        struct counted_thread *thread);

/* For a thread that could not be observed: counts the time that it ran, or wanted to run, without a
 * stack. */
int count_assumed(const struct means *means, const struct observation *observation,
                  struct counted_thread *thread);

/* For a thread that is gone, or at the end of the recording: counts its time where it was last
 * seen, or without a stack if it was never seen. */
int count_gone(const struct means *means, const struct observation *observation,
               struct counted_thread *thread);

/* The round is over: counts the waits that were held back until all threads were seen. */
int count_held(const struct means *means);

/* Gives the thread's samples all time that is owed so far. */
void count_close(const struct means *means, struct counted_thread *thread);

#endif
