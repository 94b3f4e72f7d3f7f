#include "recorder/profile.h"
#include "profile/build.h"
#include "sampler/idle.h"

#include <errno.h>

static void summarize(const struct recording *recording, struct fgprof_summary *summary)
{
    const struct histogram *pauses = &recording->pauses;
    summary->elapsed_ns = recording->end_ns - recording->start_ns;
    summary->ticks_planned = recording_tick_at(recording, recording->end_ns);
    summary->ticks_taken = recording->ticks_taken;
    if (summary->ticks_planned < summary->ticks_taken)
        summary->ticks_planned = summary->ticks_taken;
    summary->ticks_late = summary->ticks_planned - summary->ticks_taken;
    summary->threads_seen = recording->threads_seen;
    summary->processes_seen = recording->stacks.process_count;
    summary->processes_refused = recording->processes_refused;
    summary->threads_chosen = recording->threads_chosen;
    summary->threads_idle = recording->idle_tid_count;
    summary->idle_ns = recording->idle_ns;
    summary->samples = recording->samples;
    summary->samples_cut = recording->samples_cut;
    summary->samples_not_captured = recording->samples_not_captured;
    summary->samples_assumed = recording->samples_assumed;
    summary->samples_thinned = recording->samples_thinned;
    summary->timeline_lost_ns = recording->timeline.lost_ns;
    summary->lacks_files = recording->lacks_files;
    summary->jit_files_refused = recording->jit_files_refused;
    summary->jit_bytes_unread = recording->jit_bytes_unread;
    summary->stacks = recording->stacks.stack_count;
    summary->pauses = pauses->count;
    summary->pause_median_ns = histogram_quantile_ns(pauses, 500);
    summary->pause_p99_ns = histogram_quantile_ns(pauses, 990);
    summary->pause_max_ns = pauses->max_ns;
    if (recording->running_ns)
        summary->pause_share = (double)pauses->sum_ns / (double)recording->running_ns;
    summary->error = recording->error;
}

static void sum_times(const struct fgprof_profile *profile, struct fgprof_summary *summary)
{
    uint64_t *const times[FGPROF_STATE_COUNT] = {
        [FGPROF_STATE_UNKNOWN] = &summary->unknown_ns,
        [FGPROF_STATE_RUNNING] = &summary->running_ns,
        [FGPROF_STATE_RUNNABLE] = &summary->runnable_ns,
        [FGPROF_STATE_WAITING] = &summary->waiting_ns,
        [FGPROF_STATE_STOPPED] = &summary->stopped_ns,
    };
    for (size_t i = 0; i < profile->sample_count; i++)
        *times[sample_state(&profile->samples[i])] += profile->samples[i].time_ns;
}

int recorder_make_profile(struct fgprof_recorder *recorder, const struct recording *recording,
                          fgprof_profile **ret_profile)
{
    struct fgprof_profile *profile;
    const struct counted counted = {
        .table = &recording->stacks,
        .timeline = &recording->timeline,
        .spaces = &recording->spaces,
        .strings = &recording->strings,
    };
    const struct name_sources sources = {
        .names = recorder->options.names,
        .fetch = &recorder->options.fetch,
        .cache = recorder->has_names ? &recorder->names : NULL,
    };
    int err = name_profile(&counted, &sources, &profile);
    if (err)
        return err;
    profile->start_time_ns = recording->start_time_ns;
    profile->period_ns = recording->period_ns;
    summarize(recording, &profile->summary);
    sum_times(profile, &profile->summary);
    *ret_profile = profile;
    return 0;
}

/* Has the sampling thread make the copy. */
static int order_copy(struct fgprof_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    bool can_be = recorder->is_sampling && !recorder->has_ended;
    recorder->wants_copy = can_be;
    while (recorder->wants_copy && !recorder->has_ended)
        pthread_cond_wait(&recorder->ended, &recorder->lock);
    int err = !can_be || recorder->wants_copy ? -ESRCH : recorder->copy_error;
    recorder->wants_copy = false;
    pthread_mutex_unlock(&recorder->lock);
    return err;
}

int recorder_profile_so_far(struct fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    pthread_mutex_lock(&recorder->naming);
    int err = recorder->has_names ? 0 : name_cache_init(&recorder->names);
    recorder->has_names = !err;
    if (!err)
        err = order_copy(recorder);
    if (!err) {
        idle_drop(&recorder->copy.recording,
                  recorder->options.sampling.threads == FGPROF_THREADS_BY_ID);
        err = recorder_make_profile(recorder, &recorder->copy.recording, ret_profile);
    }
    pthread_mutex_unlock(&recorder->naming);
    return err;
}
