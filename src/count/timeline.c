#include "count/timeline.h"
#include "base/array.h"

#include <stdlib.h>

void timeline_want(struct timeline *timeline, uint64_t period_ns, size_t runs_max)
{
    timeline->is_wanted = true;
    timeline->grain_ns = period_ns;
    timeline->runs_max = runs_max;
}

void timeline_free(struct timeline *timeline)
{
    free(timeline->runs);
    free(timeline->threads);
    *timeline = (struct timeline){0};
}

static bool begin_thread(struct timeline *timeline, struct timeline_cursor *cursor, uint32_t tid)
{
    if (array_reserve(&timeline->threads, &timeline->thread_capacity, timeline->thread_count + 1))
        return false;
    timeline->threads[timeline->thread_count++] =
        (struct timeline_thread){.tid = tid, .begin_ns = cursor->begin_ns};
    cursor->thread_plus_1 = (uint32_t)timeline->thread_count;
    return true;
}

/* Running out of memory ends the timeline as running out of runs does. */
static bool append(struct timeline *timeline, struct timeline_cursor *cursor,
                   const struct timeline_run *run)
{
    if (timeline->is_full || timeline->run_count == timeline->runs_max ||
        array_reserve(&timeline->runs, &timeline->run_capacity, timeline->run_count + 1)) {
        timeline->is_full = true;
        return false;
    }
    timeline->runs[timeline->run_count] = *run;
    timeline->runs[timeline->run_count++].thread = cursor->thread_plus_1 - 1;
    cursor->last_run_plus_1 = (uint32_t)timeline->run_count;
    return true;
}

static struct timeline_run *last_run(struct timeline *timeline,
                                     const struct timeline_cursor *cursor)
{
    return cursor->last_run_plus_1 ? &timeline->runs[cursor->last_run_plus_1 - 1] : NULL;
}

/* Adds time that the thread spent on the sample. */
static void spend(struct timeline *timeline, struct timeline_cursor *cursor, uint64_t time_ns,
                  uint32_t sample)
{
    struct timeline_run *last = last_run(timeline, cursor);
    const struct timeline_run run = {.time_ns = time_ns, .sample = sample};
    if (!time_ns)
        return;
    if (!timeline->is_full && last && !last->is_owed && last->sample == sample) {
        last->time_ns += time_ns;
    } else if (!append(timeline, cursor, &run) && sample != TIMELINE_NO_SAMPLE) {
        timeline->threads[cursor->thread_plus_1 - 1].lost_ns += time_ns;
        timeline->lost_ns += time_ns;
    }
}

/* Places what is owed to the account in the timeline. If the timeline has ended, that time is lost
 * when it is given. */
static void place_owed(struct timeline *timeline, struct timeline_cursor *cursor, unsigned account)
{
    uint32_t *head = &cursor->owed_runs_plus_1[account];
    uint64_t *unplaced_ns = &cursor->unplaced_ns[account];
    const struct timeline_run run = {.time_ns = *unplaced_ns, .sample = *head, .is_owed = true};
    if (!timeline->is_full && *head && *head == cursor->last_run_plus_1) {
        last_run(timeline, cursor)->time_ns += *unplaced_ns;
        *unplaced_ns = 0;
    } else if (append(timeline, cursor, &run)) {
        *head = cursor->last_run_plus_1;
        *unplaced_ns = 0;
    }
}

void timeline_book(struct timeline *timeline, struct timeline_cursor *cursor, uint32_t tid,
                   uint64_t from_ns, const uint64_t booked_ns[TIMELINE_ACCOUNTS])
{
    if (!timeline->is_wanted)
        return;
    if (!cursor->until_ns)
        cursor->begin_ns = cursor->until_ns = from_ns;
    if (!cursor->thread_plus_1 && (timeline->is_full || !begin_thread(timeline, cursor, tid))) {
        timeline->is_full = true;
        for (unsigned i = 0; i < TIMELINE_ACCOUNTS; i++)
            timeline->lost_ns += booked_ns[i];
        return;
    }
    if (from_ns > cursor->until_ns) {
        timeline_drop_owed(timeline, cursor);
        spend(timeline, cursor, from_ns - cursor->until_ns, TIMELINE_NO_SAMPLE);
        cursor->until_ns = from_ns;
    }
    for (unsigned i = 0; i < TIMELINE_ACCOUNTS; i++) {
        cursor->unplaced_ns[i] += booked_ns[i];
        cursor->until_ns += booked_ns[i];
    }
}

void timeline_give(struct timeline *timeline, struct timeline_cursor *cursor, uint32_t thread_name,
                   unsigned account, uint32_t sample)
{
    if (!cursor->thread_plus_1)
        return;
    timeline->threads[cursor->thread_plus_1 - 1].name = thread_name;
    for (unsigned i = 0; i < TIMELINE_ACCOUNTS; i++) {
        if (i != account && cursor->unplaced_ns[i] >= timeline->grain_ns)
            place_owed(timeline, cursor, i);
    }
    while (cursor->owed_runs_plus_1[account]) {
        struct timeline_run *run = &timeline->runs[cursor->owed_runs_plus_1[account] - 1];
        cursor->owed_runs_plus_1[account] = run->sample;
        run->sample = sample;
        run->is_owed = false;
    }
    spend(timeline, cursor, cursor->unplaced_ns[account], sample);
    cursor->unplaced_ns[account] = 0;
}

void timeline_drop_owed(struct timeline *timeline, struct timeline_cursor *cursor)
{
    if (!cursor->thread_plus_1)
        return;
    for (unsigned i = 0; i < TIMELINE_ACCOUNTS; i++) {
        /* As for a sample, except that the name stays and the time belongs to no sample. */
        timeline_give(timeline, cursor, timeline->threads[cursor->thread_plus_1 - 1].name, i,
                      TIMELINE_NO_SAMPLE);
    }
}
