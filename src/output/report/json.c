/* The report as JSON. Keys stay as they are; what is new gets new ones. `version` grows if the
 * meaning of a key changes. */
#include "output/report/report.h"
#include "output/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define VERSION 1

#define NAME_COLUMNS 120
#define COMMAND_COLUMNS 1000

/* How many of a path's frames are written, at its root and at its leaf. */
#define FRAMES_ROOT 8
#define FRAMES_LEAF 24

void report_json_string(struct sink *sink, const char *key, const char *text, size_t columns,
                        bool is_first)
{
    struct buffer shown = {0};
    name_append_short(&shown, text, columns);
    if (shown.error && !sink->error)
        sink->error = shown.error;
    json_key(sink, key, is_first);
    json_string(sink, shown.bytes ? shown.bytes : "");
    buffer_free(&shown);
}

static void put_array_item(struct sink *sink, size_t number)
{
    sink_write(sink, ",", number > 0);
}

struct number {
    const char *key;
    uint64_t value;
};

static void put_numbers(struct sink *sink, const struct number *numbers, size_t count,
                        bool is_first)
{
    for (size_t i = 0; i < count; i++)
        json_number(sink, numbers[i].key, numbers[i].value, is_first && i == 0);
}

#define PUT_NUMBERS(sink, numbers, is_first)                                                       \
    put_numbers(sink, numbers, sizeof(numbers) / sizeof *(numbers), is_first)

static void put_recording(struct sink *sink, const struct report *report)
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
        {"kernel_refusal", summary->kernel_refusal > 0 ? (uint64_t)summary->kernel_refusal : 0},

        {"error", summary->error < 0 ? (uint64_t) - (int64_t)summary->error : 0},

    };
    report_json_string(sink, "command", profile_recorded_by(profile), COMMAND_COLUMNS, true);
    PUT_NUMBERS(sink, numbers, false);
    report_json_string(sink, "reason", profile->reason ? profile->reason : "", COMMAND_COLUMNS,
                       false);
    report_json_string(sink, "kept", profile_kept_name(profile), NAME_COLUMNS, false);
}

static void put_times(struct sink *sink, const struct report_times *times)
{
    const struct number numbers[] = {
        {"running_ns", times->state_ns[FGPROF_STATE_RUNNING]},
        {"runnable_ns", times->state_ns[FGPROF_STATE_RUNNABLE]},
        {"waiting_ns", times->state_ns[FGPROF_STATE_WAITING] - times->idle_ns},
        {"idle_ns", times->idle_ns},
        {"stopped_ns", times->state_ns[FGPROF_STATE_STOPPED]},
        {"unknown_ns", times->state_ns[FGPROF_STATE_UNKNOWN]},
    };
    PUT_NUMBERS(sink, numbers, false);
}

static void put_findings(struct sink *sink, const struct report *report)
{
    json_key(sink, "findings", false);
    sink_print(sink, "[");
    for (size_t i = 0; i < report->finding_count; i++) {
        const struct report_finding *finding = &report->findings[i];
        put_array_item(sink, i);
        sink_print(sink, "{");
        report_json_string(sink, "kind", finding->kind, NAME_COLUMNS, true);
        json_number(sink, "time_ns", finding->time_ns, false);
        report_json_string(sink, "function", label_text(&report->labels, finding->function),
                           NAME_COLUMNS, false);
        json_key(sink, "text", false);
        json_string(sink, finding->text);
        json_key(sink, "detail", false);
        json_string(sink, finding->detail ? finding->detail : "");
        sink_print(sink, "}");
    }
    sink_print(sink, "]");
}

void report_json_frames(struct sink *sink, const struct call_tree *tree,
                        const struct labels *labels, uint32_t node)
{
    uint32_t *path;
    size_t depth, omitted = 0;
    if (call_tree_path(tree, node, &path, &depth)) {
        sink->error = sink->error ? sink->error : -ENOMEM;
        return;
    }
    if (depth > FRAMES_ROOT + FRAMES_LEAF)
        omitted = depth - FRAMES_ROOT - FRAMES_LEAF;
    json_key(sink, "frames", false);
    sink_print(sink, "[");
    for (size_t i = 0; i < depth; i++) {
        if (omitted && i == FRAMES_ROOT)
            i += omitted;
        struct buffer name = {0};
        name_append_short(&name, label_text(labels, path[i]), NAME_COLUMNS);
        put_array_item(sink, i);
        json_string(sink, name.bytes ? name.bytes : "");
        buffer_free(&name);
    }
    sink_print(sink, "]");
    json_number(sink, "frames_omitted", omitted, false);
    free(path);
}

static void put_thread_ids(struct sink *sink, const struct report *report,
                           const struct report_thread *thread, bool is_first)
{
    const struct fgprof_profile *profile = report->profile;
    json_number(sink, "pid", profile->process_count ? profile->processes[thread->process].pid : 0,
                is_first);
    json_number(sink, "tid", thread->tid, false);
}

static void put_paths(struct sink *sink, const struct report *report, enum report_activity activity,
                      const char *key, size_t max)
{
    const struct report_paths *paths = &report->paths[activity];
    const struct call_tree *tree = &report->trees[activity];
    size_t shown = paths->count < max ? paths->count : max;
    json_key(sink, key, false);
    sink_print(sink, "{");
    json_number(sink, "total_ns", tree->total_ns, true);
    if (activity == REPORT_ELAPSED)
        json_number(sink, "idle_ns", report->elapsed_idle_ns, false);
    json_number(sink, "paths_left_out", paths->count + paths->left_out - shown, false);
    json_key(sink, "paths", false);
    sink_print(sink, "[");
    for (size_t i = 0; i < shown; i++) {
        const struct report_path *row = &paths->rows[i];
        put_array_item(sink, i);
        sink_print(sink, "{");
        json_number(sink, "self_ns", tree->nodes[row->node].self_ns, true);
        json_number(sink, "total_ns", tree->nodes[row->node].total_ns, false);
        json_number(sink, "threads", row->threads, false);
        json_number(sink, "threads_never_moved", row->unmoved, false);
        put_thread_ids(sink, report, &report->threads[row->thread], false);
        report_json_string(sink, "call", label_text(&report->labels, row->call), NAME_COLUMNS,
                           false);
        report_json_frames(sink, tree, &report->labels, row->node);
        sink_print(sink, "}");
    }
    sink_print(sink, "]}");
}

static void put_holders(struct sink *sink, const struct report *report)
{
    const struct strings *strings = &report->profile->strings;
    json_number(sink, "held_ns", report->held_ns, false);
    json_key(sink, "holders", false);
    sink_print(sink, "[");
    for (size_t i = 0; i < report->hold_count; i++) {
        const struct report_hold *hold = &report->holds[i];
        put_array_item(sink, i);
        sink_print(sink, "{");
        report_json_string(sink, "resource", strings_get(strings, hold->resource), NAME_COLUMNS,
                           true);
        report_json_string(sink, "owner", strings_get(strings, hold->owner_name), NAME_COLUMNS,
                           false);
        json_number(sink, "time_ns", hold->time_ns, false);
        json_key(sink, "owner_path", false);
        json_string(sink, hold->owner_path);
        json_key(sink, "waiter_path", false);
        json_string(sink, hold->waiter_path);
        sink_print(sink, "}");
    }
    sink_print(sink, "]");
}

/* By the number of threads, from 0. */
static void put_parallelism(struct sink *sink, const struct fgprof_profile *profile)
{
    json_key(sink, "running_at_once_ns", false);
    sink_print(sink, "[");
    for (size_t i = 0; i < profile->parallel_count; i++)
        sink_print(sink, "%s%" PRIu64, i ? "," : "", profile->parallel_ns[i]);
    sink_print(sink, "]");
}

static void put_processes(struct sink *sink, const struct report *report)
{
    const struct fgprof_profile *profile = report->profile;
    json_key(sink, "processes", false);
    sink_print(sink, "[");
    for (size_t i = 0; i < profile->process_count && i < REPORT_PROCESSES_MAX; i++) {
        put_array_item(sink, i);
        sink_print(sink, "{");
        json_number(sink, "pid", profile->processes[i].pid, true);
        report_json_string(sink, "name", strings_get(&profile->strings, profile->processes[i].name),
                           NAME_COLUMNS, false);
        json_number(sink, "threads", report->processes[i].threads, false);
        put_times(sink, &report->processes[i].times);
        sink_print(sink, "}");
    }
    sink_print(sink, "]");
}

static void put_threads(struct sink *sink, const struct report *report)
{
    const struct fgprof_profile *profile = report->profile;
    uint32_t busiest[REPORT_THREADS_MAX];
    size_t count = report_busiest(report, busiest, REPORT_THREADS_MAX);
    json_number(sink, "threads_idle", report->idle_threads, false);
    json_key(sink, "threads", false);
    sink_print(sink, "[");
    for (size_t i = 0; i < count; i++) {
        const struct report_thread *thread = &report->threads[busiest[i]];
        put_array_item(sink, i);
        sink_print(sink, "{");
        put_thread_ids(sink, report, thread, true);
        report_json_string(sink, "name", strings_get(&profile->strings, thread->name), NAME_COLUMNS,
                           false);
        put_times(sink, &thread->times);
        sink_print(sink, "}");
    }
    sink_print(sink, "]");
}

static void put_modules(struct sink *sink, const struct report *report)
{
    const struct strings *strings = &report->profile->strings;
    json_key(sink, "symbols_wanted", false);
    sink_print(sink, "[");
    for (size_t i = 0; i < report->module_count; i++) {
        const struct report_module *row = &report->modules[i];
        put_array_item(sink, i);
        sink_print(sink, "{");
        report_json_string(sink, "path", strings_get(strings, row->path), NAME_COLUMNS, true);
        report_json_string(sink, "build_id", strings_get(strings, row->build_id), NAME_COLUMNS,
                           false);
        json_number(sink, "samples_cut", row->samples_cut, false);
        json_number(sink, "samples_unnamed", row->samples_unnamed, false);
        sink_print(sink, "}");
    }
    sink_print(sink, "]");
}

void report_json(const struct report *report, struct sink *sink)
{
    sink_print(sink, "{\"version\":%d,\"recording\":{", VERSION);
    put_recording(sink, report);
    sink_print(sink, "}");
    put_findings(sink, report);
    put_holders(sink, report);
    put_paths(sink, report, REPORT_ELAPSED, "elapsed", REPORT_PATHS_MAX);
    put_parallelism(sink, report->profile);
    put_paths(sink, report, REPORT_RUNNING, "on_cpu", REPORT_PATHS_MAX);
    put_paths(sink, report, REPORT_WAITING, "waiting", REPORT_PATHS_MAX);
    put_paths(sink, report, REPORT_IDLE, "idle", REPORT_IDLE_MAX);
    put_processes(sink, report);
    put_threads(sink, report);
    put_modules(sink, report);
    sink_print(sink, ",\"next\":{\"command\":");
    json_string(sink, report->next);
    report_json_string(sink, "why", report->next_why, NAME_COLUMNS, false);
    sink_print(sink, "}}\n");
}
