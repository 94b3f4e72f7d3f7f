/* Counts the tasks of asyncio: a suspended task is counted with its coroutines. A running task is
 * counted as its thread.
 *
 * They are read here and not by the sampling thread, because it would take too long: each coroutine
 * needs several reads of memory, one after the other. */
#ifndef FGPROF_WORKER_PYTHON_TASKS_H
#define FGPROF_WORKER_PYTHON_TASKS_H

#include "runtime/python/tasks.h"
#include "worker/python.h"
#include "worker/runtime_tasks.h"

/* Zeroed at first. */
struct program_tasks {
    struct python_tasks_place place; /* version NULL: not known */
    size_t mapping_count;            /* of the space when it was last searched for */
    struct python_tasks tasks;
    /* A pass over all of them, in parts: */
    bool is_reading;
    size_t next;             /* of tasks.items */
    uint64_t ticks, time_ns; /* what each counts for */
    struct throttle reading; /* of the pass before; the cost of this one, so far: */
    uint64_t cost_ns;
    uint64_t counted_ns; /* CLOCK_MONOTONIC: until then their time is counted; 0: none is */
    uint64_t carry_ns;   /* less than a tick, of time that was counted */
};

/* When tasks are to be read. */
struct task_tick {
    uint32_t process;          /* a row of the stack table */
    uint64_t before_ns, at_ns; /* a program's first tick counts the time between these, later ticks
                                  the time since the tick before (CLOCK_MONOTONIC) */
    bool is_last;              /* of the recording */
};

/* Finds out once where the program has its tasks. */
void program_tasks_update(struct program_tasks *tasks, const struct means *means,
                          const struct program_python *python, const struct program_maps *maps,
                          const struct observation *observation);

/* Counts the time since the last reading for each task's present stack, unless that was just now.
 * Returns 0 or -ENOMEM. */
int program_tasks_take(struct program_tasks *tasks, const struct means *means,
                       struct program_python *python, const struct program_maps *maps,
                       const struct observation *observation, const struct task_tick *tick);

void program_tasks_free(struct program_tasks *tasks);

#endif
