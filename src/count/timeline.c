#include "count/timeline.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* A call adds at most a run for each account and an absence. */
#define ROOM_FOR_CALL (TIMELINE_ACCOUNTS + 1)
/* How often the time is halved to make room: after that it is less than a nanosecond. */
#define HALVES_MAX 64

void timeline_want(struct timeline *timeline, uint64_t period_ns, size_t runs_max, bool is_ring)
{
    timeline->is_wanted = true;
    timeline->is_ring = is_ring;
    timeline->grain_ns = period_ns;
    timeline->runs_max = runs_max;
}

void timeline_free(struct timeline *timeline)
{
    free(timeline->runs);
    free(timeline->threads);
    tick_runs_free(&timeline->ticks);
    *timeline = (struct timeline){0};
}

/* The cursor's thread, or NULL if it has none (any more). */
static struct timeline_thread *thread_of(struct timeline *timeline,
                                         const struct timeline_cursor *cursor)
{
    if (!cursor->thread_plus_1 || cursor->thread_plus_1 > timeline->thread_count)
        return NULL;
    struct timeline_thread *thread = &timeline->threads[cursor->thread_plus_1 - 1];
    return thread->serial == cursor->serial ? thread : NULL;
}

/* Returns the number of a row for another thread, or SIZE_MAX if memory is short. */
static size_t unused_thread(struct timeline *timeline)
{
    size_t number = timeline->first_unused_plus_1;
    for (; number && number <= timeline->thread_count; number++) {
        if (timeline->threads[number - 1].is_unused) {
            timeline->first_unused_plus_1 = (uint32_t)number;
            return number - 1;
        }
    }
    timeline->first_unused_plus_1 = 0;
    if (array_reserve(&timeline->threads, &timeline->thread_capacity, timeline->thread_count + 1))
        return SIZE_MAX;
    timeline->threads[timeline->thread_count] = (struct timeline_thread){0};
    return timeline->thread_count++;
}

static bool begin_thread(struct timeline *timeline, struct timeline_cursor *cursor, uint32_t tid)
{
    size_t number = unused_thread(timeline);
    if (number == SIZE_MAX)
        return false;
    cursor->thread_plus_1 = (uint32_t)number + 1;
    if (!++timeline->threads_begun)
        timeline->threads_begun = 1;
    cursor->serial = timeline->threads_begun;
    timeline->threads[number] = (struct timeline_thread){
        .tid = tid, .begin_ns = cursor->begin_ns, .serial = cursor->serial};
    return true;
}

/* If memory is short, the timeline ends as if it were full. */
static bool append(struct timeline *timeline, struct timeline_thread *thread,
                   const struct timeline_run *run)
{
    if (timeline->is_full || timeline->run_count == timeline->runs_max ||
        array_reserve(&timeline->runs, &timeline->run_capacity, timeline->run_count + 1)) {
        timeline->is_full = true;
        return false;
    }
    timeline->runs[timeline->run_count] = *run;
    timeline->runs[timeline->run_count++].thread =
        (uint32_t)(thread - timeline->threads) & INT32_MAX;
    thread->last_run_plus_1 = (uint32_t)timeline->run_count;
    return true;
}

static struct timeline_run *last_run(struct timeline *timeline,
                                     const struct timeline_thread *thread)
{
    return thread->last_run_plus_1 ? &timeline->runs[thread->last_run_plus_1 - 1] : NULL;
}

/* Adds time that the thread spent on the sample. */
static void spend(struct timeline *timeline, struct timeline_thread *thread, uint64_t time_ns,
                  uint32_t sample)
{
    struct timeline_run *last = last_run(timeline, thread);
    const struct timeline_run run = {.time_ns = time_ns, .sample = sample};
    if (!time_ns)
        return;
    if (!timeline->is_full && last && !last->is_owed && last->sample == sample) {
        last->time_ns += time_ns;
    } else if (!append(timeline, thread, &run) && sample != TIMELINE_NO_SAMPLE) {
        thread->lost_ns += time_ns;
        timeline->lost_ns += time_ns;
    }
}

/* Places what is owed to the account in the timeline. If the timeline has ended, that time is
 * discarded when it is given. */
static void place_owed(struct timeline *timeline, struct timeline_thread *thread,
                       uint64_t *unplaced_ns, unsigned account)
{
    uint32_t *head = &thread->owed_runs_plus_1[account];
    const struct timeline_run run = {.time_ns = *unplaced_ns, .sample = *head, .is_owed = true};
    if (!timeline->is_full && *head && *head == thread->last_run_plus_1) {
        last_run(timeline, thread)->time_ns += *unplaced_ns;
        *unplaced_ns = 0;
    } else if (append(timeline, thread, &run)) {
        *head = thread->last_run_plus_1;
        *unplaced_ns = 0;
    }
}

/* Makes room for what a call may add, if possible. */
static void make_room(struct timeline *timeline)
{
    for (unsigned i = 0; i < HALVES_MAX && timeline->is_ring &&
                         timeline->run_count + ROOM_FOR_CALL > timeline->runs_max;
         i++) {
        uint64_t begin_ns = timeline->forgotten_ns ? timeline->forgotten_ns : timeline->start_ns;
        uint64_t kept_ns = timeline->latest_ns > begin_ns ? timeline->latest_ns - begin_ns : 0;
        if (timeline_forget(timeline, begin_ns + (kept_ns + 1) / 2))
            return;
    }
}

void timeline_book(struct timeline *timeline, struct timeline_cursor *cursor, uint32_t tid,
                   uint64_t from_ns, const uint64_t booked_ns[TIMELINE_ACCOUNTS])
{
    if (!timeline->is_wanted)
        return;
    make_room(timeline);
    if (!cursor->until_ns || (cursor->thread_plus_1 && !thread_of(timeline, cursor)))
        *cursor = (struct timeline_cursor){.begin_ns = from_ns, .until_ns = from_ns};
    if (!cursor->thread_plus_1 && (timeline->is_full || !begin_thread(timeline, cursor, tid))) {
        timeline->is_full = true;
        for (unsigned i = 0; i < TIMELINE_ACCOUNTS; i++)
            timeline->lost_ns += booked_ns[i];
        return;
    }
    thread_of(timeline, cursor)->has_ended = false;
    if (from_ns > cursor->until_ns) {
        timeline_drop_owed(timeline, cursor);
        spend(timeline, thread_of(timeline, cursor), from_ns - cursor->until_ns,
              TIMELINE_NO_SAMPLE);
        cursor->until_ns = from_ns;
    }
    for (unsigned i = 0; i < TIMELINE_ACCOUNTS; i++) {
        cursor->unplaced_ns[i] += booked_ns[i];
        cursor->until_ns += booked_ns[i];
    }
    if (cursor->until_ns > timeline->latest_ns)
        timeline->latest_ns = cursor->until_ns;
}

void timeline_give(struct timeline *timeline, struct timeline_cursor *cursor, uint32_t thread_name,
                   unsigned account, uint32_t sample)
{
    make_room(timeline);
    struct timeline_thread *thread = thread_of(timeline, cursor);
    if (!thread)
        return;
    thread->name = thread_name;
    for (unsigned i = 0; i < TIMELINE_ACCOUNTS; i++) {
        if (i != account && cursor->unplaced_ns[i] >= timeline->grain_ns)
            place_owed(timeline, thread, &cursor->unplaced_ns[i], i);
    }
    while (thread->owed_runs_plus_1[account]) {
        struct timeline_run *run = &timeline->runs[thread->owed_runs_plus_1[account] - 1];
        thread->owed_runs_plus_1[account] = run->sample;
        run->sample = sample;
        run->is_owed = false;
    }
    spend(timeline, thread, cursor->unplaced_ns[account], sample);
    cursor->unplaced_ns[account] = 0;
}

void timeline_correct(struct timeline *timeline, const struct timeline_cursor *cursor,
                      uint32_t from, uint32_t to)
{
    struct timeline_thread *thread = thread_of(timeline, cursor);
    struct timeline_run *run = thread ? last_run(timeline, thread) : NULL;
    if (run && !run->is_owed && run->sample == from)
        run->sample = to;
}

void timeline_drop_owed(struct timeline *timeline, struct timeline_cursor *cursor)
{
    const struct timeline_thread *thread = thread_of(timeline, cursor);
    if (!thread)
        return;
    for (unsigned i = 0; i < TIMELINE_ACCOUNTS; i++) {
        /* As for a sample, except that the name stays and the time belongs to no sample. */
        timeline_give(timeline, cursor, thread->name, i, TIMELINE_NO_SAMPLE);
    }
}

void timeline_end(struct timeline *timeline, const struct timeline_cursor *cursor)
{
    struct timeline_thread *thread = thread_of(timeline, cursor);
    if (thread)
        thread->has_ended = true;
}

/* Finds the runs that are left of the time since `before_ns`. Those that begin earlier are cut, and
 * the threads begin where their first runs do. */
static void cut_runs(struct timeline *timeline, uint64_t before_ns, uint64_t *until_ns,
                     struct renumber *runs)
{
    for (size_t i = 0; i < timeline->thread_count; i++)
        until_ns[i] = timeline->threads[i].begin_ns;
    for (size_t i = 0; i < timeline->run_count; i++) {
        struct timeline_run *run = &timeline->runs[i];
        uint64_t begin_ns = until_ns[run->thread], end_ns = begin_ns + run->time_ns;
        until_ns[run->thread] = end_ns;
        if (begin_ns < before_ns)
            timeline->threads[run->thread].begin_ns = end_ns < before_ns ? end_ns : before_ns;
        if (end_ns <= before_ns)
            continue;
        if (begin_ns < before_ns)
            run->time_ns = end_ns - before_ns;
        renumber_keep(runs, (uint32_t)i);
    }
}

static void move_runs(struct timeline *timeline, const struct renumber *runs)
{
    for (size_t i = 0; i < timeline->run_count; i++) {
        if (timeline->runs[i].is_owed)
            timeline->runs[i].sample = renumber_plus_1(runs, timeline->runs[i].sample);
    }
    renumber_move(runs, timeline->runs, sizeof *timeline->runs);
    timeline->run_count = renumber_kept(runs);
    for (size_t i = 0; i < timeline->thread_count; i++) {
        struct timeline_thread *thread = &timeline->threads[i];
        thread->last_run_plus_1 = renumber_plus_1(runs, thread->last_run_plus_1);
        for (unsigned j = 0; j < TIMELINE_ACCOUNTS; j++)
            thread->owed_runs_plus_1[j] = renumber_plus_1(runs, thread->owed_runs_plus_1[j]);
        if (thread->has_ended && !thread->last_run_plus_1 && !thread->is_unused) {
            *thread = (struct timeline_thread){.is_unused = true};
            if (!timeline->first_unused_plus_1 || i < timeline->first_unused_plus_1 - 1)
                timeline->first_unused_plus_1 = (uint32_t)i + 1;
        }
    }
    while (timeline->thread_count && timeline->threads[timeline->thread_count - 1].is_unused)
        timeline->thread_count--;
    array_trim(&timeline->threads, &timeline->thread_capacity, timeline->thread_count);
    array_trim(&timeline->runs, &timeline->run_capacity, timeline->run_count);
}

int timeline_forget(struct timeline *timeline, uint64_t before_ns)
{
    struct renumber runs;
    uint64_t *until_ns = malloc(timeline->thread_count * sizeof *until_ns + 1);
    int err = renumber_init(&runs, timeline->run_count);
    if (!until_ns || err) {
        free(until_ns);
        renumber_free(&runs);
        return -ENOMEM;
    }
    cut_runs(timeline, before_ns, until_ns, &runs);
    renumber_assign(&runs);
    move_runs(timeline, &runs);
    if (before_ns > timeline->forgotten_ns)
        timeline->forgotten_ns = before_ns;
    timeline->is_full = false;
    free(until_ns);
    renumber_free(&runs);
    return 0;
}

void timeline_keep_samples(const struct timeline *timeline, struct renumber *samples)
{
    for (size_t i = 0; i < timeline->run_count; i++) {
        if (!timeline->runs[i].is_owed)
            renumber_keep(samples, timeline->runs[i].sample);
    }
    for (size_t i = 0; i < timeline->ticks.count; i++)
        renumber_keep(samples, timeline->ticks.runs[i].sample);
}

void timeline_renumber_samples(struct timeline *timeline, const struct renumber *samples)
{
    for (size_t i = 0; i < timeline->run_count; i++) {
        if (!timeline->runs[i].is_owed)
            timeline->runs[i].sample = renumber_of(samples, timeline->runs[i].sample);
    }
    for (size_t i = 0; i < timeline->ticks.count; i++)
        timeline->ticks.runs[i].sample = renumber_of(samples, timeline->ticks.runs[i].sample);
}

void timeline_keep_names(const struct timeline *timeline, struct renumber *strings)
{
    for (size_t i = 0; i < timeline->thread_count; i++)
        renumber_keep(strings, timeline->threads[i].name);
}

void timeline_renumber_names(struct timeline *timeline, const struct renumber *strings)
{
    for (size_t i = 0; i < timeline->thread_count; i++)
        timeline->threads[i].name = renumber_of(strings, timeline->threads[i].name);
}

size_t timeline_bytes(const struct timeline *timeline)
{
    return timeline->run_count * sizeof *timeline->runs +
           timeline->thread_count * sizeof *timeline->threads +
           timeline->ticks.count * sizeof *timeline->ticks.runs;
}

int timeline_copy(const struct timeline *timeline, struct timeline *copy)
{
    struct timeline_run *runs = copy->runs;
    struct timeline_thread *threads = copy->threads;
    size_t run_capacity = copy->run_capacity, thread_capacity = copy->thread_capacity;
    int err = array_reserve(&runs, &run_capacity, timeline->run_count);
    if (array_reserve(&threads, &thread_capacity, timeline->thread_count))
        err = -ENOMEM;
    *copy = err ? (struct timeline){0} : *timeline;
    copy->runs = runs;
    copy->threads = threads;
    copy->run_capacity = run_capacity;
    copy->thread_capacity = thread_capacity;
    if (err)
        return err;
    if (timeline->run_count)
        memcpy(runs, timeline->runs, timeline->run_count * sizeof *runs);
    if (timeline->thread_count)
        memcpy(threads, timeline->threads, timeline->thread_count * sizeof *threads);
    return 0;
}
