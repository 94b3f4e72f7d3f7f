/* The report as JSON. Keys are stable; new contents get new keys. `version` grows if the meaning of
 * a key changes. */
#include "output/report/report.h"
#include "output/json.h"

#include <errno.h>
#include <stdlib.h>

#define VERSION 1

#define NAME_COLUMNS 120
#define COMMAND_COLUMNS 1000

/* The most frames of a path that are written, at its root and at its leaf. */
#define FRAMES_ROOT 8
#define FRAMES_LEAF 24

void report_json_string(struct json *json, const char *key, const char *text, size_t columns)
{
    struct buffer shown = {0};
    name_append_short(&shown, text, columns);
    if (shown.error && !json->sink->error)
        json->sink->error = shown.error;
    json_string(json, key, shown.bytes ? shown.bytes : "");
    buffer_free(&shown);
}

struct number {
    const char *key;
    uint64_t value;
};

static void put_numbers(struct json *json, const struct number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_number(json, numbers[i].key, numbers[i].value);
}

#define PUT_NUMBERS(json, numbers) put_numbers(json, numbers, sizeof(numbers) / sizeof *(numbers))

static void put_recording(struct json *json, const struct report *report)
{
    const struct fgprof_profile *profile = report->profile;
    const struct fgprof_summary *summary = &profile->summary;
    const struct number numbers[] = {
        {"start_time_ns", profile->start_time_ns},
        {"elapsed_ns", summary->elapsed_ns},
        {"period_ns", profile->period_ns},
        {"seed", summary->seed},
        {"ticks_planned", summary->ticks_planned},
        {"ticks_taken", summary->ticks_taken},
        {"ticks_late", summary->ticks_late},
        {"processes_seen", summary->processes_seen},
        {"threads_seen", summary->threads_seen},
        {"samples", summary->samples},
        {"samples_cut", summary->samples_cut},
        {"samples_unnamed", summary->samples_unnamed},
        {"samples_not_captured", summary->samples_not_captured},
        {"samples_assumed", summary->samples_assumed},
        {"samples_thinned", summary->samples_thinned},
        {"kernel_samples", summary->kernel_samples},
        {"kernel_samples_lost", summary->kernel_samples_lost},
        {"pauses", summary->pauses},
        {"pause_median_ns", summary->pause_median_ns},
        {"pause_max_ns", summary->pause_max_ns},
        {"recorded_samples", summary->recorded_samples},
        {"recorded_lost", summary->recorded_lost},
        {"wakes_lost", summary->wakes_lost},
        {"hidden_returns", summary->hidden_returns},
        {"switches_unrecorded", summary->switches_unrecorded},
        {"record_refusal", summary->record_refusal > 0 ? (uint64_t)summary->record_refusal : 0},
        {"filter_refusal", summary->filter_refusal},
        {"throttled_ns", summary->throttled_ns},
        {"quota_millicpu", summary->quota_millicpu},
        {"steal_ns", summary->steal_ns},
        {"kernel_refusal", summary->kernel_refusal > 0 ? (uint64_t)summary->kernel_refusal : 0},

        {"error", summary->error < 0 ? (uint64_t) - (int64_t)summary->error : 0},

    };
    report_json_string(json, "command", profile_recorded_by(profile), COMMAND_COLUMNS);
    PUT_NUMBERS(json, numbers);
    report_json_string(json, "reason", profile->reason ? profile->reason : "", COMMAND_COLUMNS);
    report_json_string(json, "kept", profile_kept_name(profile), NAME_COLUMNS);
}

static void put_times(struct json *json, const struct report_times *times)
{
    const struct number numbers[] = {
        {"running_ns", times->state_ns[FGPROF_STATE_RUNNING]},
        {"runnable_ns", times->state_ns[FGPROF_STATE_RUNNABLE]},
        {"waiting_ns", times->state_ns[FGPROF_STATE_WAITING] - times->idle_ns},
        {"idle_ns", times->idle_ns},
        {"stopped_ns", times->state_ns[FGPROF_STATE_STOPPED]},
        {"unknown_ns", times->state_ns[FGPROF_STATE_UNKNOWN]},
    };
    PUT_NUMBERS(json, numbers);
}

static void put_findings(struct json *json, const struct report *report)
{
    json_begin(json, "findings", '[');
    for (size_t i = 0; i < report->finding_count; i++) {
        const struct report_finding *finding = &report->findings[i];
        json_begin(json, NULL, '{');
        report_json_string(json, "kind", finding->kind, NAME_COLUMNS);
        json_number(json, "time_ns", finding->time_ns);
        report_json_string(json, "function", label_text(&report->labels, finding->function),
                           NAME_COLUMNS);
        json_string(json, "text", finding->text);
        json_string(json, "detail", finding->detail ? finding->detail : "");
        json_end(json, '}');
    }
    json_end(json, ']');
}

void report_json_frames(struct json *json, const struct call_tree *tree,
                        const struct labels *labels, uint32_t node)
{
    uint32_t *path;
    size_t depth, omitted = 0;
    if (call_tree_path(tree, node, &path, &depth)) {
        json->sink->error = json->sink->error ? json->sink->error : -ENOMEM;
        return;
    }
    if (depth > FRAMES_ROOT + FRAMES_LEAF)
        omitted = depth - FRAMES_ROOT - FRAMES_LEAF;
    json_begin(json, "frames", '[');
    for (size_t i = 0; i < depth; i++) {
        if (omitted && i == FRAMES_ROOT)
            i += omitted;
        report_json_string(json, NULL, label_text(labels, path[i]), NAME_COLUMNS);
    }
    json_end(json, ']');
    json_number(json, "frames_omitted", omitted);
    free(path);
}

static void put_thread_ids(struct json *json, const struct report *report,
                           const struct report_thread *thread)
{
    const struct fgprof_profile *profile = report->profile;
    json_number(json, "pid", profile->process_count ? profile->processes[thread->process].pid : 0);
    json_number(json, thread->is_goroutine ? "goroutine" : "tid", thread->tid);
}

static void put_paths(struct json *json, const struct report *report, enum report_activity activity,
                      const char *key, size_t max)
{
    const struct report_paths *paths = &report->paths[activity];
    const struct call_tree *tree = &report->trees[activity];
    size_t shown = paths->count < max ? paths->count : max;
    json_begin(json, key, '{');
    json_number(json, "total_ns", tree->total_ns);
    if (activity == REPORT_ELAPSED)
        json_number(json, "idle_ns", report->elapsed_idle_ns);
    json_number(json, "paths_left_out", paths->count + paths->left_out - shown);
    json_begin(json, "paths", '[');
    for (size_t i = 0; i < shown; i++) {
        const struct report_path *row = &paths->rows[i];
        json_begin(json, NULL, '{');
        json_number(json, "self_ns", tree->nodes[row->node].self_ns);
        json_number(json, "total_ns", tree->nodes[row->node].total_ns);
        json_number(json, "threads", row->threads);
        json_number(json, "threads_never_moved", row->unmoved);
        put_thread_ids(json, report, &report->threads[row->thread]);
        report_json_string(json, "call", label_text(&report->labels, row->call), NAME_COLUMNS);
        report_json_frames(json, tree, &report->labels, row->node);
        json_end(json, '}');
    }
    json_end(json, ']');
    json_end(json, '}');
}

/* For holders, wakers, and the threads that had CPUs that others waited for. */
struct hold_keys {
    const char *time_ns, *rows, *owner, *owner_path;
};

static void put_holds(struct json *json, const struct report *report,
                      const struct report_holds *holds, const struct hold_keys *keys)
{
    const struct strings *strings = &report->profile->strings;
    json_number(json, keys->time_ns, holds->time_ns);
    json_begin(json, keys->rows, '[');
    for (size_t i = 0; i < holds->count; i++) {
        const struct report_hold *hold = &holds->rows[i];
        json_begin(json, NULL, '{');
        report_json_string(json, "resource", strings_get(strings, hold->resource), NAME_COLUMNS);
        report_json_string(json, keys->owner, strings_get(strings, hold->owner_name), NAME_COLUMNS);
        json_number(json, "time_ns", hold->time_ns);
        json_string(json, keys->owner_path, hold->owner_path);
        json_string(json, "waiter_path", hold->waiter_path);
        json_end(json, '}');
    }
    json_end(json, ']');
}

/* By the number of running threads, from 0. */
static void put_parallelism(struct json *json, const struct fgprof_profile *profile)
{
    json_begin(json, "running_at_once_ns", '[');
    for (size_t i = 0; i < profile->parallel_count; i++)
        json_number(json, NULL, profile->parallel_ns[i]);
    json_end(json, ']');
}

static void put_critical(struct json *json, const struct fgprof_profile *profile)
{
    const struct profile_critical *critical = &profile->critical;
    const struct number numbers[] = {
        {"time_ns", critical->ticks * profile->period_ns},
        {"waiting_ns", critical->waited * profile->period_ns},
        {"inferred_ns", critical->inferred * profile->period_ns},
        {"not_followed_ns", critical->unknown * profile->period_ns},
    };
    if (!critical->of)
        return;
    json_begin(json, "critical", '{');
    report_json_string(json, "of", critical->of, NAME_COLUMNS);
    PUT_NUMBERS(json, numbers);
    json_begin(json, "waits_for", '[');
    for (size_t i = 0; i < CRITICAL_ENDS && critical->ends[i].ticks; i++) {
        json_begin(json, NULL, '{');
        report_json_string(json, "what", strings_get(&profile->strings, critical->ends[i].text),
                           NAME_COLUMNS);
        json_number(json, "time_ns", critical->ends[i].ticks * profile->period_ns);
        json_end(json, '}');
    }
    json_end(json, ']');
    json_end(json, '}');
}

static void put_processes(struct json *json, const struct report *report)
{
    const struct fgprof_profile *profile = report->profile;
    json_begin(json, "processes", '[');
    for (size_t i = 0; i < profile->process_count && i < REPORT_PROCESSES_MAX; i++) {
        json_begin(json, NULL, '{');
        json_number(json, "pid", profile->processes[i].pid);
        report_json_string(json, "name", strings_get(&profile->strings, profile->processes[i].name),
                           NAME_COLUMNS);
        json_number(json, "threads", report->processes[i].threads);
        put_times(json, &report->processes[i].times);
        json_end(json, '}');
    }
    json_end(json, ']');
}

static void put_threads(struct json *json, const struct report *report)
{
    const struct fgprof_profile *profile = report->profile;
    uint32_t busiest[REPORT_THREADS_MAX];
    size_t count = report_busiest(report, busiest, REPORT_THREADS_MAX);
    json_number(json, "threads_idle", report->idle_threads);
    json_begin(json, "threads", '[');
    for (size_t i = 0; i < count; i++) {
        const struct report_thread *thread = &report->threads[busiest[i]];
        json_begin(json, NULL, '{');
        put_thread_ids(json, report, thread);
        report_json_string(json, "name", strings_get(&profile->strings, thread->name),
                           NAME_COLUMNS);
        put_times(json, &thread->times);
        json_end(json, '}');
    }
    json_end(json, ']');
}

static void put_modules(struct json *json, const struct report *report)
{
    const struct strings *strings = &report->profile->strings;
    json_begin(json, "symbols_wanted", '[');
    for (size_t i = 0; i < report->module_count; i++) {
        const struct report_module *row = &report->modules[i];
        json_begin(json, NULL, '{');
        report_json_string(json, "path", strings_get(strings, row->path), NAME_COLUMNS);
        report_json_string(json, "build_id", strings_get(strings, row->build_id), NAME_COLUMNS);
        json_number(json, "samples_cut", row->samples_cut);
        json_number(json, "samples_unnamed", row->samples_unnamed);
        json_end(json, '}');
    }
    json_end(json, ']');
}

void report_json(const struct report *report, struct sink *sink)
{
    static const struct hold_keys of_held = {"held_ns", "holders", "owner", "owner_path"},
                                  of_woken = {"woken_ns", "wakers", "waker", "waker_path"},
                                  of_cpus = {"cpu_use_known_ns", "cpu_users", "owner",
                                             "owner_path"};
    struct json json = {.sink = sink};
    json_begin(&json, NULL, '{');
    json_number(&json, "version", VERSION);
    json_begin(&json, "recording", '{');
    put_recording(&json, report);
    json_end(&json, '}');
    put_critical(&json, report->profile);
    put_findings(&json, report);
    put_holds(&json, report, &report->held, &of_held);
    put_holds(&json, report, &report->woken, &of_woken);
    put_holds(&json, report, &report->cpus, &of_cpus);
    put_paths(&json, report, REPORT_ELAPSED, "elapsed", REPORT_PATHS_MAX);
    put_parallelism(&json, report->profile);
    put_paths(&json, report, REPORT_RUNNING, "on_cpu", REPORT_PATHS_MAX);
    put_paths(&json, report, REPORT_WAITING, "waiting", REPORT_PATHS_MAX);
    put_paths(&json, report, REPORT_IDLE, "idle", REPORT_IDLE_MAX);
    put_processes(&json, report);
    put_threads(&json, report);
    put_modules(&json, report);
    json_begin(&json, "next", '{');
    json_string(&json, "command", report->next);
    report_json_string(&json, "why", report->next_why, NAME_COLUMNS);
    json_end(&json, '}');
    json_end(&json, '}');
    sink_write(sink, "\n", 1);
}
