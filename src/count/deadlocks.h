/* The deadlocks that were found: threads that wait for each other in a cycle. */
#ifndef FGPROF_COUNT_DEADLOCKS_H
#define FGPROF_COUNT_DEADLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* The most threads in a cycle: longer chains of owners are not followed. */
#define DEADLOCK_THREADS_MAX 64
#define DEADLOCKS_MAX 256

/* A thread in a deadlock. Each row's thread waits for the next row's thread, and the last row of a
 * deadlock for the first. */
struct deadlock_thread {
    uint32_t deadlock; /* its number, from 0 */
    uint32_t tid;
    uint32_t process;     /* in stack_table.processes */
    uint32_t name;        /* in the recording's strings */
    uint32_t stack;       /* in stack_table.stacks: where it waits */
    uint32_t wait_plus_1; /* the row of what it waits for; 0: there were too many */
    uint64_t since_ns;    /* CLOCK_MONOTONIC: when all of them had been seen asleep */
};

/* Zeroed at first. */
struct deadlocks {
    struct deadlock_thread *rows;
    size_t row_count, capacity;
    uint32_t count; /* of deadlocks, including those that there was no room for */
};

/* Adds a deadlock of these threads, and sets their numbers. Returns 0 or -ENOMEM. */
int deadlocks_add(struct deadlocks *deadlocks, struct deadlock_thread *threads, size_t count);

void deadlocks_free(struct deadlocks *deadlocks);

#endif
