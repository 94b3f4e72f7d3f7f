/* Which sample each thread was in at each tick, so that a wait can be followed to what the thread
 * that ended it did meanwhile.
 *
 * A run is successive ticks of a thread in one sample. While a thread is off its CPU, this is known
 * for each tick, and each of its waits has runs of its own. While it runs, the kernel samples it
 * about once a period, but not at the ticks: such a sample is a run of one tick, and stands for
 * nearby ticks at which the thread was not off its CPU. Runs are in the order in which they were
 * found. */
#ifndef FGPROF_COUNT_TICK_RUNS_H
#define FGPROF_COUNT_TICK_RUNS_H

#include "base/renumber.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tick_run {
    uint32_t thread;    /* its row in the timeline */
    uint32_t sample;    /* in the stack table; TIMELINE_NO_SAMPLE: it is not known */
    uint32_t last_tick; /* ticks count from 1 */
    uint32_t ticks : 31;
    uint32_t ran : 1; /* the kernel sampled it while it ran */
};

struct tick_runs {
    size_t runs_max; /* 0: none are kept */
    struct tick_run *runs;
    size_t count, capacity;
    uint64_t lost; /* ticks beyond the most runs */
};

/* A thread's last run off its CPU. Zeroed at first. */
struct tick_cursor {
    uint32_t run_plus_1;
    uint64_t wait; /* which wait it is of; 0: of none */
};

/* The thread was off its CPU at the `ticks` ticks up to `last_tick`; `wait` distinguishes its
 * waits. */
void tick_runs_add(struct tick_runs *runs, struct tick_cursor *cursor, uint32_t thread,
                   uint32_t sample, uint64_t last_tick, uint64_t ticks, uint64_t wait);

/* The kernel sampled the thread before that tick. */
void tick_runs_add_running(struct tick_runs *runs, uint32_t thread, uint32_t sample, uint64_t tick);

/* Moves the thread's last run from sample `from` to `to`, if it is of this wait. */
void tick_runs_correct(struct tick_runs *runs, const struct tick_cursor *cursor, uint64_t wait,
                       uint32_t from, uint32_t to);

void tick_runs_free(struct tick_runs *runs);

#endif
