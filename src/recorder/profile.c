#include "recorder/recorder.h"
#include "base/clock.h"
#include "profile/births.h"
#include "proc/procfs.h"
#include "profile/build.h"
#include "sampler/processes.h"
#include "worker/idle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Clocks that were not set drift by less than this. */
#define CLOCK_STEP_NS 1000000000u

/* What a profile is made from. */
struct recorded {
    const struct results *results;
    const struct sampling_counts *counts;
    uint64_t begin_ns, until_ns; /* CLOCK_MONOTONIC */
    uint64_t ticks_before;       /* planned before it begins */
    int error;
};

static void summarize_sampling(const struct clock *clock, const struct recorded *recorded,
                               struct fgprof_summary *summary)
{
    const struct sampling_counts *counts = recorded->counts;
    const struct histogram *pauses = &counts->pauses;
    summary->elapsed_ns = recorded->until_ns - recorded->begin_ns;
    summary->seed = clock->ticks.seed;
    summary->ticks_planned =
        recorder_ticks_planned(clock, counts, recorded->until_ns) - recorded->ticks_before;
    summary->ticks_taken = counts->ticks_taken;
    /* A tick due before the beginning may have been taken after it. */
    if (summary->ticks_planned < summary->ticks_taken)
        summary->ticks_planned = summary->ticks_taken;
    summary->ticks_late = summary->ticks_planned - summary->ticks_taken;
    summary->threads_seen = counts->threads_seen;
    summary->threads_chosen = counts->threads_chosen;
    summary->processes_refused = counts->processes_refused;
    summary->samples_assumed = counts->samples_assumed;
    summary->samples_thinned = counts->samples_thinned;
    summary->observations_put_off = counts->observations_put_off;
    summary->lacks_files = counts->lacks_files;
    summary->has_kernel_samples = counts->has_kernel_samples;
    summary->has_thread_events = counts->has_thread_events;
    summary->has_switch_record = counts->has_switch_record;
    summary->record_refusal = counts->record_refusal;
    summary->recorded_samples = counts->recorded_samples;
    summary->recorded_lost = counts->recorded_lost;
    summary->wakes_lost = counts->wakes_lost;
    summary->hidden_returns = counts->hidden_returns;
    summary->switches_unrecorded = counts->switches_unrecorded;
    summary->kernel_refusal = counts->kernel_refusal;
    summary->kernel_names_refusal = (uint64_t)counts->kernel_names_refusal;
    summary->filter_refusal = (uint64_t)counts->filter_refusal;
    summary->kernel_samples = counts->kernel_samples;
    summary->kernel_samples_lost = counts->kernel_samples_lost;
    summary->kernel_samples_dropped = counts->kernel_samples_dropped;
    summary->threads_kernel_sampled = counts->threads_kernel_sampled;
    summary->threads_stopped = counts->threads_stopped;
    summary->threads_without_event = counts->threads_without_event;
    summary->threads_unsampled = counts->threads_unsampled;
    summary->threads_waits_unseen = counts->threads_waits_unseen;
    summary->event_refusal = counts->event_refusal;
    summary->waits_refusal = counts->waits_refusal;
    summary->pauses = pauses->count;
    summary->pause_median_ns = histogram_quantile_ns(pauses, 500);
    summary->pause_p99_ns = histogram_quantile_ns(pauses, 990);
    summary->pause_max_ns = pauses->max_ns;
    if (recorded->results->counts.running_ns)
        summary->pause_share =
            (double)pauses->sum_ns / (double)recorded->results->counts.running_ns;
    summary->throttled_ns = counts->cpu_losses.throttled_ns;
    summary->quota_millicpu = counts->cpu_losses.quota_millicpu;
    summary->steal_ns = counts->cpu_losses.steal_ns;
    summary->error = recorded->error;
}

/* Threads that had no task are not shown. */
static void leave_out(const struct stack_table *stacks, struct fgprof_summary *summary)
{
    for (size_t i = 0; i < stacks->sample_count; i++) {
        const struct counted_sample *sample = &stacks->samples[i];
        if (sample->labels.task != TASK_NONE)
            continue;
        summary->threads_without_goroutine_ns += sample->time_ns;
        summary->samples -= sample->count < summary->samples ? sample->count : summary->samples;
    }
}

static void summarize_results(const struct results *results, struct fgprof_summary *summary)
{
    const struct result_counts *counts = &results->counts;
    summary->processes_seen = results->stacks.processes_added;
    summary->samples = counts->samples;
    summary->samples_cut = counts->samples_cut;
    summary->samples_not_captured = counts->samples_not_captured;
    summary->timeline_lost_ns = results->timeline.lost_ns;
    summary->critical_lost_ns = results->timeline.ticks.lost * results->timeline.grain_ns;
    summary->jit_files_refused = counts->jit_files_refused;
    summary->jit_bytes_unread = counts->jit_bytes_unread;
    summary->labels_read = counts->labels_read;
    summary->labels_later = counts->labels_later;
    summary->labels_changed = counts->labels_changed;
    summary->labels_unreadable = counts->labels_unreadable;
    summary->labels_bad = counts->labels_bad;
    summary->labels_limited = counts->labels_limited;
    summary->waits_limited = results->waits.limited;
    summary->ended_are_joined = counts->ended_are_joined;
    summary->processes_joined = counts->processes_joined;
    summary->samples_not_kept = counts->samples_not_kept;
    summary->python_stacks = counts->python_stacks;
    summary->python_stacks_missing = counts->python_stacks_missing;
    summary->python_version = counts->python_version;
    summary->goroutine_ns = counts->goroutine_ns;
    summary->goroutines_moved = counts->goroutines_moved;
    summary->goroutines_left_out = counts->goroutines_left_out;
    summary->goroutines_unreadable = counts->goroutines_unreadable;
    summary->go_version = counts->go_version;
    summary->task_ns = counts->task_ns;
    summary->tasks_moved = counts->tasks_moved;
    summary->tasks_cut = counts->tasks_cut;
    summary->tasks_version = counts->tasks_version;
    summary->spans_kept = counts->spans_kept;
    summary->spans_dropped = counts->spans_dropped;
    summary->spans_dropped_ns = counts->spans_dropped_ns;
    summary->stacks = results->stacks.stack_count;
    summary->deadlocks = results->deadlocks.count;
    leave_out(&results->stacks, summary);
}

static void summarize_idle(const struct results *results, struct fgprof_summary *summary)
{
    summary->threads_idle = results->idle_tid_count;
    summary->idle_ns = results->counts.idle_ns;
}

/* Threads that are not distinguished share samples: some may have moved. */
static void mark_idle(const struct results *results, struct fgprof_profile *profile)
{
    for (size_t i = 0; i < profile->sample_count; i++)
        profile->samples[i].never_moved =
            !profile->samples[i].is_goroutine && idle_has(results, profile->samples[i].tid);
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

/* Converts to wall-clock time as of the beginning, unless the clock has been set since, or the
 * machine was suspended. */
static uint64_t time_of(const struct clock *clock, uint64_t at_ns)
{
    uint64_t told_ns = clock->start_time_ns + (at_ns - clock->ticks.start_ns);
    uint64_t now_ns = wall_ns() - (monotonic_ns() - at_ns);
    uint64_t apart_ns = now_ns > told_ns ? now_ns - told_ns : told_ns - now_ns;
    return apart_ns > CLOCK_STEP_NS ? now_ns : told_ns;
}

/* Sets the title that a process has set in place of its arguments, such as "postgres: walwriter",
 * unless it has none or has ended. Arguments may hold secrets and are not kept; they are recognized
 * as several strings, or one word. */
static int set_title(struct fgprof_profile *profile, struct profile_process *process)
{
    char path[32], text[256];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/cmdline", process->pid);
    ssize_t length = process->pid ? procfs_read(AT_FDCWD, path, text, sizeof text) : 0;
    while (length > 0 && (text[length - 1] == '\0' || text[length - 1] == ' '))
        length--;
    if (length <= 0 || memchr(text, '\0', (size_t)length) || !memchr(text, ' ', (size_t)length))
        return 0;
    text[length] = '\0';
    return strings_intern(&profile->strings, text, &process->title);
}

/* Sets where it was recorded, and of what, as far as that is known. */
static int set_origin(struct fgprof_profile *profile)
{
    char host[HOST_NAME_MAX + 1] = "";
    gethostname(host, sizeof host - 1);
    profile->host = *host ? strdup(host) : NULL;
    int err = *host && !profile->host ? -ENOMEM : 0;
    for (size_t i = 0; i < profile->process_count && !err; i++)
        err = set_title(profile, &profile->processes[i]);
    return err;
}

/* Where names are looked up, under `recorder->naming`. */
static struct name_sources name_sources(struct fgprof_recorder *recorder)
{
    return (struct name_sources){
        .names = recorder->options.names,
        .fetch = &recorder->options.fetch,
        .reader = recorder->reader,
        .cache = recorder->has_names ? &recorder->names : NULL,
    };
}

/* Names the results and fills the summary, under `recorder->naming`. Returns 0 or -ENOMEM. */
static int make_profile(struct fgprof_recorder *recorder, const struct recorded *recorded,
                        fgprof_profile **ret_profile)
{
    const struct clock *clock = &recorder->sampler.clock;
    struct fgprof_profile *profile;
    const struct counted counted = {
        .table = &recorded->results->stacks,
        .waits = &recorded->results->waits,
        .label_sets = &recorded->results->label_sets,
        .runtime_frames = &recorded->results->runtime_frames,
        .deadlocks = &recorded->results->deadlocks,
        .begin_ns = clock->ticks.start_ns,
        .timeline = &recorded->results->timeline,
        .spaces = &recorded->results->spaces,
        .strings = &recorded->results->strings,
        .elapsed = recorder->options.sampler.is_dump ? NULL : recorded->results->elapsed,
        .parallelism = &recorded->results->parallelism,
        .until_ns = recorded->until_ns,
    };
    const struct name_sources sources = name_sources(recorder);
    int err = name_profile(&counted, &sources, &profile);
    if (err)
        return err;
    if (recorder->options.sampler.objects.kinds[OBJECT_THREAD])
        err = name_births(profile, &counted, &recorded->results->objects, OBJECT_THREAD, &sources);
    if (!err)
        err = set_origin(profile);
    if (err) {
        profile_free(profile);
        return err;
    }
    profile->start_time_ns = time_of(clock, recorded->begin_ns);
    profile->period_ns = clock->ticks.period_ns;
    summarize_sampling(clock, recorded, &profile->summary);
    summarize_results(recorded->results, &profile->summary);
    if (recorder->options.drops_idle)
        summarize_idle(recorded->results, &profile->summary);
    else
        mark_idle(recorded->results, profile);
    sum_times(profile, &profile->summary);
    *ret_profile = profile;
    return 0;
}

static void drop_idle(const struct fgprof_recorder *recorder, struct results *results)
{
    idle_sort(results);
    if (recorder->options.drops_idle)
        idle_drop(results, recorder->options.threads == FGPROF_THREADS_BY_ID);
}

/* Subtracts the checkpoint, if it is not NULL. Returns when the profile begins. */
static uint64_t leave_what_came_after(const struct fgprof_recorder *recorder,
                                      const struct checkpoint *checkpoint, struct results *results,
                                      struct sampling_counts *counts)
{
    if (!checkpoint)
        return recorder->sampler.clock.ticks.start_ns;
    checkpoint_subtract(checkpoint, results, counts);
    return checkpoint_at_ns(checkpoint);
}

/* Timelines begin with the profile. */
static int cut_timelines(struct results *results, uint64_t begin_ns)
{
    if (!results->timeline.is_ring)
        return 0;
    results->timeline.start_ns = begin_ns;
    return timeline_forget(&results->timeline, begin_ns);
}

/* Under `recorder->naming`. */
static int checkpoint_of_copy(const struct fgprof_recorder *recorder,
                              struct checkpoint **ret_checkpoint)
{
    const struct copy *copy = &recorder->copy;
    const struct sampling_state state = {copy->counts, copy->until_ns};
    uint64_t planned =
        recorder_ticks_planned(&recorder->sampler.clock, &copy->counts, copy->until_ns);
    return checkpoint_take(&copy->results, &state, planned, ret_checkpoint);
}

static int error_so_far(struct fgprof_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    int error = recorder->error;
    pthread_mutex_unlock(&recorder->lock);
    return error;
}

/* Makes a profile of the copy since a checkpoint (see checkpoints_lock), or of the last `last_ns`
 * if that is not 0. The caller holds `recorder->naming`. */
static int profile_copy(struct fgprof_recorder *recorder, const struct fgprof_moment *since,
                        uint64_t last_ns, fgprof_profile **ret_profile)
{
    struct copy *copy = &recorder->copy;
    struct recorded recorded = {
        .results = &copy->results,
        .counts = &copy->counts,
        .until_ns = copy->until_ns,
        .error = error_so_far(recorder),
    };
    uint64_t begin_ns = last_ns && copy->until_ns > last_ns ? copy->until_ns - last_ns : 0;
    const struct checkpoint *checkpoint = checkpoints_lock(recorder->checkpoints, since, begin_ns);
    /* Samples were dropped since the copy was made. */
    if (checkpoint && checkpoint_at_ns(checkpoint) > copy->until_ns) {
        checkpoints_unlock(recorder->checkpoints);
        return -EAGAIN;
    }
    recorded.begin_ns = leave_what_came_after(recorder, checkpoint, &copy->results, &copy->counts);
    recorded.ticks_before = checkpoint ? checkpoint_ticks_planned(checkpoint) : 0;
    checkpoints_unlock(recorder->checkpoints);
    int err = cut_timelines(&copy->results, recorded.begin_ns);
    if (err)
        return err;
    drop_idle(recorder, &copy->results);
    return make_profile(recorder, &recorded, ret_profile);
}

static int moment_of_copy(struct fgprof_recorder *recorder, struct fgprof_moment **ret_moment)
{
    struct checkpoint *checkpoint = NULL;
    int err = checkpoint_of_copy(recorder, &checkpoint);
    if (!err)
        err = checkpoints_hold(recorder->checkpoints, checkpoint, ret_moment);
    if (err)
        checkpoint_free(checkpoint);
    return err;
}

int fgprof_recorder_moment(fgprof_recorder *recorder, fgprof_moment **ret_checkpoint)
{
    pthread_mutex_lock(&recorder->naming);
    int err = recorder_order_copy(recorder);
    if (!err)
        err = moment_of_copy(recorder, ret_checkpoint);
    pthread_mutex_unlock(&recorder->naming);
    return err;
}

/* *ret_next: the moment at which the profile ends. It is held before names are looked up, which
 * takes a while: what comes in meanwhile belongs to the next profile. The caller holds
 * `recorder->naming`. */
static int profile_new_copy(struct fgprof_recorder *recorder, const struct fgprof_moment *since,
                            uint64_t last_ns, struct fgprof_moment **ret_next,
                            fgprof_profile **ret_profile)
{
    struct fgprof_moment *next = NULL;
    int err = recorder_order_copy(recorder);
    if (!err && ret_next)
        err = moment_of_copy(recorder, &next);
    if (!err)
        err = profile_copy(recorder, since, last_ns, ret_profile);
    if (err)
        fgprof_moment_free(next);
    else if (ret_next)
        *ret_next = next;
    return err;
}

/* To be followed by unlock_names. Returns 0 or -ENOMEM. */
static int lock_names(struct fgprof_recorder *recorder)
{
    pthread_mutex_lock(&recorder->naming);
    int err = recorder->has_names ? 0 : name_cache_init(&recorder->names);
    recorder->has_names = !err;
    return err;
}

/* If memory is short, old names stay. */
static void unlock_names(struct fgprof_recorder *recorder)
{
    name_cache_age(&recorder->names);
    atomic_store(&recorder->name_bytes, name_cache_bytes(&recorder->names));
    pthread_mutex_unlock(&recorder->naming);
}

static int profile_now(struct fgprof_recorder *recorder, const struct fgprof_moment *since,
                       uint64_t last_ns, struct fgprof_moment **ret_next,
                       fgprof_profile **ret_profile)
{
    int err = lock_names(recorder);
    if (!err) {
        do
            err = profile_new_copy(recorder, since, last_ns, ret_next, ret_profile);
        while (err == -EAGAIN);
    }
    unlock_names(recorder);
    return err;
}

int fgprof_recorder_profile_since(fgprof_recorder *recorder, const fgprof_moment *checkpoint,
                                  fgprof_profile **ret_profile)
{
    return profile_now(recorder, checkpoint, 0, NULL, ret_profile);
}

int fgprof_recorder_profile_so_far(fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    return fgprof_recorder_profile_since(recorder, NULL, ret_profile);
}

int fgprof_recorder_profile_last(fgprof_recorder *recorder, uint64_t last_ns,
                                 fgprof_profile **ret_profile)
{
    return profile_now(recorder, NULL, last_ns, NULL, ret_profile);
}

int fgprof_recorder_profile_next(fgprof_recorder *recorder, fgprof_moment **checkpoint,
                                 fgprof_profile **ret_profile)
{
    struct fgprof_moment *next;
    int err = profile_now(recorder, *checkpoint, 0, &next, ret_profile);
    if (err)
        return err;
    fgprof_moment_free(*checkpoint);
    *checkpoint = next;
    return 0;
}

static void swap_timelines(struct fgprof_recorder *recorder)
{
    struct timeline timeline = recorder->copy.results.timeline;
    recorder->copy.results.timeline = recorder->results.timeline;
    recorder->results.timeline = timeline;
}

/* Idle threads are dropped only from a copy: a profile since a moment, which may be requested
 * later, needs everything that was counted. Timelines are not copied, but lent. The caller holds
 * `recorder->naming`. */
static int profile_without_idle(struct fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    int err = recorder_order_copy(recorder);
    if (err)
        return err;
    swap_timelines(recorder);
    err = profile_copy(recorder, NULL, 0, ret_profile);
    swap_timelines(recorder);
    return err;
}

/* Under `recorder->naming`. */
static int profile_all(struct fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    const struct recorded recorded = {
        .results = &recorder->results,
        .counts = &recorder->sampler.counts,
        .begin_ns = recorder->sampler.clock.ticks.start_ns,
        .until_ns = recorder->sampler.clock.end_ns,
        .error = recorder->error,
    };
    idle_sort(&recorder->results);
    return make_profile(recorder, &recorded, ret_profile);
}

/* Makes the profile of a recording that has ended. Returns 0 or -ENOMEM. */
static int profile_at_end(struct fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    if (recorder->options.keep_ns)
        return profile_now(recorder, NULL, 0, NULL, ret_profile);
    pthread_mutex_lock(&recorder->naming);
    int err = recorder->options.drops_idle ? profile_without_idle(recorder, ret_profile)
                                           : profile_all(recorder, ret_profile);
    pthread_mutex_unlock(&recorder->naming);
    return err;
}

int fgprof_recorder_run(fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    if (recorder->has_run)
        return -EALREADY;
    if (!recorder->sampler.process_count && !atomic_load(&recorder->child))
        return -ESRCH;
    recorder->has_run = true;
    int err = recorder_sample(recorder);
    return err ? err : profile_at_end(recorder, ret_profile);
}

/* The objects in a kind of profile; OBJECT_KIND_COUNT if it has none. */
static enum object_kind objects_of(enum fgprof_kind kind)
{
    switch (kind) {
    case FGPROF_KIND_HEAP:
    case FGPROF_KIND_ALLOCS:
        return OBJECT_ALLOCATION;
    case FGPROF_KIND_GROWTH:
        return OBJECT_PAGE;
    case FGPROF_KIND_THREADCREATE:
        return OBJECT_THREAD;
    case FGPROF_KIND_CUSTOM:
        return OBJECT_VALUE;
    default:
        return OBJECT_KIND_COUNT;
    }
}

/* The figures about frames are set already. */
static void summarize_objects(const struct results *results, const struct object_counts *counts,
                              struct fgprof_profile *profile)
{
    struct fgprof_summary *summary = &profile->summary;
    summary->processes_seen = results->stacks.processes_added;
    summary->jit_files_refused = results->counts.jit_files_refused;
    summary->jit_bytes_unread = results->counts.jit_bytes_unread;
    summary->stacks = profile->stack_count;
    summary->allocator_is_own = counts->allocator_is_own;
    summary->filter_refusal = (uint64_t)counts->filter_refusal;
    summary->sees_user_only = counts->sees_user_only;
}

static int set_objects(struct fgprof_profile *profile, const struct object_counts *counts,
                       const char *name)
{
    profile->objects = (struct profile_objects){
        .rate = counts->rate,
        .made_lost = counts->made_lost,
        .gone_lost = counts->gone_lost,
        .resident_peak = counts->resident_peak,
    };
    return strings_intern(&profile->strings, name ? name : "", &profile->objects.name);
}

/* Makes it from the copy, under `recorder->naming`. */
static int make_objects(struct fgprof_recorder *recorder, enum fgprof_kind kind, const char *name,
                        fgprof_profile **ret_profile)
{
    const struct clock *clock = &recorder->sampler.clock;
    const struct copy *copy = &recorder->copy;
    enum object_kind objects = objects_of(kind);
    const struct recorded recorded = {
        .results = &copy->results,
        .counts = &copy->counts,
        .begin_ns = clock->ticks.start_ns,
        .until_ns = copy->until_ns,
        .error = error_so_far(recorder),
    };
    const struct counted counted = {
        .table = &copy->results.stacks,
        .spaces = &copy->results.spaces,
        .strings = &copy->results.strings,
    };
    const struct chosen_objects chosen = {
        .objects = &copy->results.objects,
        .maker_kind = (uint32_t)objects,
        .name = kind == FGPROF_KIND_CUSTOM ? name : NULL,
        .are_threads = objects == OBJECT_THREAD,
        .are_allocations = objects == OBJECT_ALLOCATION,
    };
    const struct name_sources sources = name_sources(recorder);
    struct fgprof_profile *profile;
    int err = name_objects(&counted, &chosen, &sources, &profile);
    if (err)
        return err;
    err = set_objects(profile, &copy->results.object_counts[objects], chosen.name);
    profile->objects.made_lost += copy->results.objects.lost[objects];
    if (!err)
        err = set_origin(profile);
    if (err) {
        profile_free(profile);
        return err;
    }
    profile->kind = kind;
    profile->start_time_ns = time_of(clock, recorded.begin_ns);
    profile->period_ns = clock->ticks.period_ns;
    summarize_sampling(clock, &recorded, &profile->summary);
    summarize_objects(recorded.results, &copy->results.object_counts[objects], profile);
    *ret_profile = profile;
    return 0;
}

static bool are_recorded(const struct fgprof_recorder *recorder, enum object_kind objects)
{
    return objects != OBJECT_KIND_COUNT && recorder->options.sampler.objects.kinds[objects];
}

int fgprof_recorder_check_objects(fgprof_recorder *recorder, enum fgprof_kind kind)
{
    enum object_kind objects = objects_of(kind);
    return are_recorded(recorder, objects) ? processes_try_objects(&recorder->sampler, objects)
                                           : -EINVAL;
}

/* Makes a copy, under `recorder->naming`, and checks that it has such objects. */
static int order_objects(struct fgprof_recorder *recorder, enum object_kind objects)
{
    int err = recorder_order_copy(recorder);
    return err ? err : object_counts_refusal(&recorder->copy.results.object_counts[objects]);
}

int fgprof_recorder_objects(fgprof_recorder *recorder, enum fgprof_kind kind, const char *name,
                            fgprof_profile **ret_profile)
{
    enum object_kind objects = objects_of(kind);
    if (!are_recorded(recorder, objects))
        return -EINVAL;
    int err = lock_names(recorder);
    if (!err)
        err = order_objects(recorder, objects);
    if (!err)
        err = make_objects(recorder, kind, name, ret_profile);
    unlock_names(recorder);
    return err;
}

/* Counts the objects in use, or all objects for kinds that show all. */
static uint64_t count_objects(const struct results *results, enum fgprof_kind kind,
                              const char *name)
{
    uint64_t count = 0;
    bool shows_all = kind == FGPROF_KIND_ALLOCS || kind == FGPROF_KIND_THREADCREATE;
    for (size_t i = 0; i < results->objects.maker_count; i++) {
        const struct counted_maker *row = &results->objects.makers[i];
        const char *known = strings_get(&results->strings, row->maker.name);
        if (row->maker.kind == (uint32_t)objects_of(kind) && (!name || strcmp(known, name) == 0))
            count += row->made - (shows_all ? 0 : row->gone);
    }
    return count;
}

int fgprof_recorder_count_objects(fgprof_recorder *recorder, enum fgprof_kind kind,
                                  const char *name, uint64_t *ret_count)
{
    enum object_kind objects = objects_of(kind);
    if (!are_recorded(recorder, objects))
        return -EINVAL;
    pthread_mutex_lock(&recorder->naming);
    int err = order_objects(recorder, objects);
    if (!err)
        *ret_count = count_objects(&recorder->copy.results, kind, name);
    pthread_mutex_unlock(&recorder->naming);
    return err;
}
