/* Sorts the runs of all threads by thread, in time and in ticks. */
#include "profile/profile.h"
#include "base/array.h"
#include "wait/resource.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int set_threads(struct fgprof_profile *profile, const struct timeline *timeline,
                       const struct strings *strings)
{
    profile->timelines = calloc(timeline->thread_count + 1, sizeof *profile->timelines);
    if (!profile->timelines)
        return -ENOMEM;
    for (size_t i = 0; i < timeline->thread_count; i++) {
        const struct timeline_thread *thread = &timeline->threads[i];
        struct profile_timeline *row = &profile->timelines[i];
        row->tid = thread->tid;
        row->lost_ns = thread->lost_ns;
        if (thread->begin_ns > timeline->start_ns)
            row->begin_ns = thread->begin_ns - timeline->start_ns;
        if (strings_intern(&profile->strings, strings_get(strings, thread->name),
                           &row->thread_name))
            return -ENOMEM;
    }
    profile->timeline_count = timeline->thread_count;
    return 0;
}

/* ---- The same by ticks ---- */

/* A sample of a running thread stands for this many ticks before and after it. Beyond that, it is a
 * guess. */
#define NEAR_TICKS 1

/* One thread's runs, sorted by their last ticks. */
struct thread_ticks {
    const struct tick_run **rows;
    size_t count;
    size_t ran; /* no sample of the running thread before this row is nearer to a later tick */
    const uint32_t *samples; /* the profile's, by the stack table's */
};

static int compare_ticks(const void *a, const void *b)
{
    const struct tick_run *left = *(const struct tick_run *const *)a;
    const struct tick_run *right = *(const struct tick_run *const *)b;
    int order = ORDER(left->last_tick, right->last_tick);
    return order ? order : ORDER(left, right);
}

static int add_ticks(struct fgprof_profile *profile, struct profile_timeline *row, uint32_t sample,
                     uint64_t ticks, bool is_inferred)
{
    struct profile_tick_run *last =
        row->tick_run_count ? &profile->tick_runs[profile->tick_run_count - 1] : NULL;
    if (!ticks)
        return 0;
    if (last && last->sample == sample && last->is_inferred == is_inferred) {
        last->ticks += (uint32_t)ticks;
        return 0;
    }
    if (array_append(&profile->tick_runs, &profile->tick_run_count, &profile->tick_run_capacity,
                     (struct profile_tick_run){sample, (uint32_t)ticks, is_inferred}))
        return -ENOMEM;
    row->tick_run_count++;
    return 0;
}

/* Finds the next sample of the running thread from row number `from` on. */
static const struct tick_run *next_running(const struct thread_ticks *thread, size_t from,
                                           size_t *ret_number)
{
    for (; from < thread->count && !thread->rows[from]->ran; from++) {
    }
    *ret_number = from;
    return from < thread->count ? thread->rows[from] : NULL;
}

static uint64_t within(uint64_t low, uint64_t value, uint64_t high)
{
    return value < low ? low : value < high ? value : high;
}

/* The thread ran from `tick` to before `end`, and this is its nearest sample. */
static int add_nearest(struct fgprof_profile *profile, struct profile_timeline *row,
                       uint32_t sample, uint64_t sampled_tick, uint64_t tick, uint64_t end)
{
    uint64_t near = sampled_tick > NEAR_TICKS ? sampled_tick - NEAR_TICKS : 0;
    uint64_t near_begin = within(tick, near, end);
    uint64_t near_end = within(tick, sampled_tick + NEAR_TICKS + 1, end);
    bool is_known = sample != PROFILE_NO_SAMPLE;
    int err = add_ticks(profile, row, sample, near_begin - tick, is_known);
    if (!err)
        err = add_ticks(profile, row, sample, near_end - near_begin, false);
    return err ? err : add_ticks(profile, row, sample, end - near_end, is_known);
}

/* The thread ran from `tick` to before `until`: at each tick where it was sampled nearest to it. */
static int add_running(struct fgprof_profile *profile, struct profile_timeline *row,
                       struct thread_ticks *thread, uint64_t tick, uint64_t until)
{
    int err = 0;
    while (tick < until && !err) {
        const struct tick_run *ran = next_running(thread, thread->ran, &thread->ran), *next;
        size_t number;
        if (!ran)
            return add_ticks(profile, row, PROFILE_NO_SAMPLE, until - tick, false);
        while ((next = next_running(thread, thread->ran + 1, &number)) &&
               ((uint64_t)ran->last_tick + next->last_tick) / 2 < tick) {
            ran = next;
            thread->ran = number;
        }
        uint64_t end = next ? ((uint64_t)ran->last_tick + next->last_tick) / 2 + 1 : until;
        end = end < until ? end : until;
        err = add_nearest(profile, row, thread->samples[ran->sample], ran->last_tick, tick, end);
        tick = end;
    }
    return err;
}

static int add_thread_ticks(struct fgprof_profile *profile, struct profile_timeline *row,
                            struct thread_ticks *thread)
{
    uint64_t tick = UINT64_MAX, last_ran = 0;
    int err = 0;
    array_sort(thread->rows, thread->count, compare_ticks);
    for (size_t i = 0; i < thread->count; i++) {
        uint64_t first = (uint64_t)thread->rows[i]->last_tick - thread->rows[i]->ticks + 1;
        tick = first < tick ? first : tick;
        if (thread->rows[i]->ran)
            last_ran = thread->rows[i]->last_tick;
    }
    row->first_tick = thread->count ? (uint32_t)tick : 0;
    row->first_tick_run = profile->tick_run_count;
    for (size_t i = 0; i < thread->count && !err; i++) {
        const struct tick_run *run = thread->rows[i];
        uint64_t first = (uint64_t)run->last_tick - run->ticks + 1;
        if (run->ran || run->last_tick < tick)
            continue;
        err = first > tick ? add_running(profile, row, thread, tick, first) : 0;
        if (!err)
            err = add_ticks(profile, row,
                            run->sample == TIMELINE_NO_SAMPLE ? PROFILE_NO_SAMPLE
                                                              : thread->samples[run->sample],
                            run->last_tick + 1 - (first > tick ? first : tick), false);
        tick = (uint64_t)run->last_tick + 1;
    }
    return err || last_ran < tick ? err : add_running(profile, row, thread, tick, last_ran + 1);
}

/* Without the kernel's record, nothing says what ended a wait or which thread had a CPU, so ticks
 * are useless. */
static bool has_record(const struct fgprof_profile *profile)
{
    const char *cpu = resource_kind_name(RESOURCE_CPU);
    for (size_t i = 0; i < profile->wait_count; i++) {
        const struct profile_wait *wait = &profile->waits[i];
        if (wait->waker || strcmp(strings_get(&profile->strings, wait->kind), cpu) == 0)
            return true;
    }
    return false;
}

/* Sorts the runs by thread. `firsts` has room for a number for each thread. */
static void sort_by_thread(const struct timeline *timeline, size_t *firsts,
                           const struct tick_run **rows)
{
    size_t count = 0;
    for (size_t i = 0; i < timeline->ticks.count; i++)
        firsts[timeline->ticks.runs[i].thread]++;
    for (size_t i = 0; i < timeline->thread_count; i++) {
        size_t of_thread = firsts[i];
        firsts[i] = count;
        count += of_thread;
    }
    for (size_t i = 0; i < timeline->ticks.count; i++)
        rows[firsts[timeline->ticks.runs[i].thread]++] = &timeline->ticks.runs[i];
}

/* The rows of the profile's timelines are those of the timeline's threads. */
static int set_tick_runs(struct fgprof_profile *profile, const struct timeline *timeline,
                         const uint32_t *samples)
{
    const struct tick_run **rows = calloc(timeline->ticks.count + 1, sizeof *rows);
    size_t *ends = calloc(timeline->thread_count + 1, sizeof *ends), first = 0;
    int err = rows && ends ? 0 : -ENOMEM;
    if (!err)
        sort_by_thread(timeline, ends, rows);
    for (size_t i = 0; i < timeline->thread_count && !err; i++) {
        struct thread_ticks thread = {.rows = rows + first,
                                      .count =
                                          timeline->threads[i].is_left_out ? 0 : ends[i] - first,
                                      .samples = samples};
        first = ends[i];
        err = add_thread_ticks(profile, &profile->timelines[i], &thread);
    }
    free(rows);
    free(ends);
    return err;
}

/* Removes the rows of threads without runs: those left out, or that ended before the kept time. */
static void remove_left_out(struct fgprof_profile *profile, const struct timeline *timeline)
{
    size_t kept = 0;
    for (size_t i = 0; i < profile->timeline_count; i++) {
        bool is_forgotten = timeline->is_ring && !profile->timelines[i].run_count;
        if (!timeline->threads[i].is_left_out && !is_forgotten)
            profile->timelines[kept++] = profile->timelines[i];
    }
    profile->timeline_count = kept;
}

/* Merges neighbouring runs, because distinct samples may have become one. */
static void add_run(struct fgprof_profile *profile, struct profile_timeline *row,
                    const struct profile_run *run)
{
    struct profile_run *runs = &profile->runs[row->first_run];
    if (row->run_count && runs[row->run_count - 1].sample == run->sample)
        runs[row->run_count - 1].time_ns += run->time_ns;
    else
        runs[row->run_count++] = *run;
}

/* By begin, then by id, so that a program's first thread comes first. */
static int compare_rows(const void *a, const void *b)
{
    const struct profile_timeline *left = a, *right = b;
    int order = ORDER(left->begin_ns, right->begin_ns);
    return order ? order : ORDER(left->tid, right->tid);
}

int profile_set_timelines(struct fgprof_profile *profile, const struct timeline *timeline,
                          const uint32_t *samples, const struct strings *strings)
{
    int err = set_threads(profile, timeline, strings);
    profile->runs = calloc(timeline->run_count + 1, sizeof *profile->runs);
    if (err || !profile->runs)
        return -ENOMEM;
    for (size_t i = 0; i < timeline->run_count; i++)
        profile->timelines[timeline->runs[i].thread].run_count +=
            !timeline->threads[timeline->runs[i].thread].is_left_out;
    for (size_t i = 0; i < profile->timeline_count; i++) {
        profile->timelines[i].first_run = profile->run_count;
        profile->run_count += profile->timelines[i].run_count;
        profile->timelines[i].run_count = 0;
    }
    for (size_t i = 0; i < timeline->run_count; i++) {
        const struct timeline_run *from = &timeline->runs[i];
        if (timeline->threads[from->thread].is_left_out)
            continue;
        bool is_known = !from->is_owed && from->sample != TIMELINE_NO_SAMPLE;
        const struct profile_run run = {is_known ? samples[from->sample] : PROFILE_NO_SAMPLE,
                                        from->time_ns};
        add_run(profile, &profile->timelines[from->thread], &run);
    }
    if (has_record(profile))
        err = set_tick_runs(profile, timeline, samples);
    if (err)
        return err;
    remove_left_out(profile, timeline);
    array_sort(profile->timelines, profile->timeline_count, compare_rows);
    profile->has_timelines = true;
    return 0;
}

#define IDLE_SHARE_PERCENT 90 /* as in reports */

static bool is_idle(const struct fgprof_profile *profile, const struct profile_timeline *timeline)
{
    double own_ns = 0, waiting_ns = 0;
    for (size_t i = 0; i < timeline->run_count; i++) {
        const struct profile_run *run = &profile->runs[timeline->first_run + i];
        if (run->sample == PROFILE_NO_SAMPLE)
            continue;
        const struct profile_sample *sample = &profile->samples[run->sample];
        const struct profile_wait *wait = sample_wait(profile, sample);
        bool is_for_owner = wait && wait->owner_process != PROFILE_NO_OWNER;
        own_ns += sample->state == THREAD_RUNNABLE ? 0 : (double)run->time_ns;
        waiting_ns += sample->state == THREAD_SLEEPING && !is_for_owner ? (double)run->time_ns : 0;
    }
    return waiting_ns > 0 && 100 * waiting_ns >= IDLE_SHARE_PERCENT * own_ns;
}

uint32_t *profile_timelines_idle_last(const struct fgprof_profile *profile)
{
    uint32_t *numbers = calloc(profile->timeline_count + 1, sizeof *numbers);
    size_t count = 0;
    for (int idle = 0; idle < 2 && numbers; idle++) {
        for (size_t i = 0; i < profile->timeline_count; i++) {
            if (is_idle(profile, &profile->timelines[i]) == idle)
                numbers[count++] = (uint32_t)i;
        }
    }
    return numbers;
}
