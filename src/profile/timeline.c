/* Sorts the runs of all threads by thread. */
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>

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

/* Removes the rows of threads without runs: those left out, or ended before what is kept. */
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

/* Joins neighbouring runs, as distinct samples may have become one. */
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
    if (left->begin_ns != right->begin_ns)
        return left->begin_ns < right->begin_ns ? -1 : 1;
    return (left->tid > right->tid) - (left->tid < right->tid);
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
    remove_left_out(profile, timeline);
    if (profile->timeline_count)
        qsort(profile->timelines, profile->timeline_count, sizeof *profile->timelines,
              compare_rows);
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
