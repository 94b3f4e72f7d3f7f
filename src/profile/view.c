#include "profile/view.h"
#include "profile/objects.h"
#include "profile/frame.h"

#include <errno.h>
#include <stdlib.h>

/* Only its samples are used: profile_add_sample merges equal ones. */
static int take_samples(struct fgprof_profile *merged, int err, struct profile_view *ret_view)
{
    index_free(&merged->sample_index);
    if (err)
        free(merged->samples);
    else
        *ret_view =
            (struct profile_view){.samples = merged->samples, .sample_count = merged->sample_count};
    return err;
}

/* Whether writers show the sample. Objects without any value are not shown. */
static bool is_shown(const struct fgprof_profile *profile, const struct profile_sample *sample)
{
    return profile_keeps(profile, sample) &&
           (!profile_is_of_objects(profile) || objects_has_any(profile, sample));
}

static bool has_part(const struct profile_sample *sample, unsigned times)
{
    return times &
           (FGPROF_TIME_WALL | (sample_is_on_cpu(sample) ? FGPROF_TIME_CPU : FGPROF_TIME_OFF_CPU));
}

int profile_view_make_times(const struct fgprof_profile *profile, unsigned times,
                            bool tells_threads, struct profile_view *ret_view)
{
    struct fgprof_profile merged = {0};
    int err = 0;
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        const struct profile_sample *from = &profile->samples[i];
        if (!is_shown(profile, from) || !has_part(from, times) || sample_is_idle(from))
            continue;
        struct profile_sample sample = {
            .stack = from->stack,
            .process = from->process,
            .state = sample_is_on_cpu(from) && times != FGPROF_TIME_WALL ? THREAD_RUNNING
                                                                         : THREAD_UNKNOWN,
            .count = from->count,
            .time_ns = from->time_ns,
            .sleeps = from->sleeps,
            .object_bytes = from->object_bytes,
            .made = from->made,
            .gone = from->gone,
        };
        if (tells_threads)
            sample.thread_name = from->thread_name;
        if (tells_threads && profile->threads == FGPROF_THREADS_BY_ID) {
            sample.tid = from->is_goroutine ? 0 : from->tid;
            sample.goroutine = from->is_goroutine ? from->tid : from->goroutine;
        }
        err = profile_add_sample(&merged, &sample, NULL);
    }
    return take_samples(&merged, err, ret_view);
}

int profile_view_make(const struct fgprof_profile *profile, bool tells_places,
                      struct profile_view *ret_view)
{
    struct fgprof_profile merged = {0};
    uint32_t *numbers = calloc(profile->sample_count + 1, sizeof *numbers);
    int err = numbers ? 0 : -ENOMEM;
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        struct profile_sample sample = profile->samples[i];
        numbers[i] = PROFILE_NO_SAMPLE;
        if (!is_shown(profile, &sample))
            continue;
        if (profile->threads == FGPROF_THREADS_BY_NAME)
            sample.tid = sample.goroutine = 0;
        if (sample.wait_plus_1 && !tells_places)
            sample.wait_plus_1 = profile->waits[sample.wait_plus_1 - 1].label + 1;
        err = profile_add_sample(&merged, &sample, &numbers[i]);
    }
    err = take_samples(&merged, err, ret_view);
    if (err)
        free(numbers);
    else
        ret_view->numbers = numbers;
    return err;
}

void profile_view_free(struct profile_view *view)
{
    free(view->samples);
    free(view->numbers);
    *view = (struct profile_view){0};
}

int fgprof_profile_leave_out(fgprof_profile *profile, const char *function)
{
    uint32_t kept = 0, *numbers = calloc(profile->sample_count + 1, sizeof *numbers);
    if (!numbers)
        return -ENOMEM;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_stack *stack = &profile->stacks[profile->samples[i].stack];
        if (stack_has_function(profile, stack, function, true)) {
            numbers[i] = PROFILE_NO_SAMPLE;
        } else {
            numbers[i] = kept;
            profile->samples[kept++] = profile->samples[i];
        }
    }
    profile->sample_count = kept;
    for (size_t i = 0; i < profile->run_count; i++) {
        if (profile->runs[i].sample != PROFILE_NO_SAMPLE)
            profile->runs[i].sample = numbers[profile->runs[i].sample];
    }
    for (size_t i = 0; i < profile->tick_run_count; i++) {
        if (profile->tick_runs[i].sample != PROFILE_NO_SAMPLE)
            profile->tick_runs[i].sample = numbers[profile->tick_runs[i].sample];
    }
    free(numbers);
    /* The index is stale, and not needed any more. */
    index_free(&profile->sample_index);
    profile->sample_index = (struct index){0};
    return 0;
}
