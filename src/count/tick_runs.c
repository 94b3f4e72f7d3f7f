#include "count/tick_runs.h"
#include "base/array.h"

#include <stdlib.h>

#define TICKS_MAX ((uint64_t)INT32_MAX)

/* If memory is short, that is as if there were too many. */
static bool append(struct tick_runs *runs, const struct tick_run *run)
{
    if (runs->count >= runs->runs_max ||
        array_reserve(&runs->runs, &runs->capacity, runs->count + 1)) {
        runs->lost += run->ticks;
        return false;
    }
    runs->runs[runs->count++] = *run;
    return true;
}

void tick_runs_add(struct tick_runs *runs, struct tick_cursor *cursor, uint32_t thread,
                   uint32_t sample, uint64_t last_tick, uint64_t ticks, uint64_t wait)
{
    if (!runs->runs_max || !ticks || ticks > last_tick || last_tick > TICKS_MAX)
        return;
    struct tick_run *last = cursor->run_plus_1 ? &runs->runs[cursor->run_plus_1 - 1] : NULL;
    if (last && last->thread == thread && last->sample == sample && cursor->wait == wait &&
        last->last_tick + ticks == last_tick) {
        last->last_tick += (uint32_t)ticks;
        last->ticks = (last->ticks + (uint32_t)ticks) & INT32_MAX;
        return;
    }
    const struct tick_run run = {.thread = thread,
                                 .sample = sample,
                                 .last_tick = (uint32_t)last_tick,
                                 .ticks = (uint32_t)ticks & INT32_MAX};
    if (append(runs, &run))
        *cursor = (struct tick_cursor){(uint32_t)runs->count, wait};
    else
        *cursor = (struct tick_cursor){0};
}

void tick_runs_add_running(struct tick_runs *runs, uint32_t thread, uint32_t sample, uint64_t tick)
{
    const struct tick_run run = {
        .thread = thread, .sample = sample, .last_tick = (uint32_t)tick, .ticks = 1, .ran = true};
    if (runs->runs_max && tick && tick <= TICKS_MAX)
        append(runs, &run);
}

void tick_runs_correct(struct tick_runs *runs, const struct tick_cursor *cursor, uint64_t wait,
                       uint32_t from, uint32_t to)
{
    struct tick_run *last = cursor->run_plus_1 ? &runs->runs[cursor->run_plus_1 - 1] : NULL;
    if (last && wait && cursor->wait == wait && last->sample == from)
        last->sample = to;
}

void tick_runs_free(struct tick_runs *runs)
{
    free(runs->runs);
    *runs = (struct tick_runs){0};
}
