/* The report as text: at most 100 lines, without colours. */
#include "output/report/paths.h"
#include "output/report/report.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdint.h>

#define COMMAND_COLUMNS 100
#define REASON_COLUMNS 200
#define CALL_COLUMNS 24
#define ROW_COLUMNS 56 /* of a thread or process, with what stands before it */

static void append_number(struct buffer *buffer, uint64_t number, const char *one,
                          const char *several)
{
    buffer_print(buffer, "%" PRIu64 " %s", number, number == 1 ? one : several);
}

static void append_capture(struct buffer *buffer, const struct fgprof_summary *summary)
{
    buffer_puts(buffer, "  running threads: ");
    if (summary->kernel_samples)
        append_number(buffer, summary->kernel_samples, "sample by the kernel",
                      "samples by the kernel");
    if (summary->pauses) {
        buffer_puts(buffer, summary->kernel_samples ? ", " : "");
        append_number(buffer, summary->pauses, "pause", "pauses");
        buffer_print(buffer, " of %.0f us (median), %.0f us at most",
                     (double)summary->pause_median_ns / 1e3, (double)summary->pause_max_ns / 1e3);
    }
    if (!summary->kernel_samples && !summary->pauses)
        buffer_puts(buffer, "none was found");
    if (summary->kernel_refusal)
        buffer_puts(buffer, "; the kernel may not sample them");
    buffer_puts(buffer, "\n");
}

static void append_processes(struct buffer *buffer, const struct report *report)
{
    enum { NAMED_MAX = 3 };
    size_t count = report->profile->process_count;
    if (count > 1)
        buffer_print(buffer, "%zu processes: ", count);
    for (size_t i = 0; i < count && i < NAMED_MAX; i++) {
        buffer_puts(buffer, i ? ", " : "");
        report_append_process(buffer, report, (uint32_t)i);
    }
    buffer_puts(buffer, count > NAMED_MAX ? " ..." : count ? "" : "no process");
}

static void append_head(struct buffer *buffer, const struct report *report)
{
    static const char *const kept[] = {"", ", only time on a CPU", ", only time off the CPU"};
    const struct fgprof_profile *profile = report->profile;
    const struct fgprof_summary *summary = &profile->summary;
    const char *command = profile_recorded_by(profile);
    buffer_puts(buffer, "fgprof-c report: ");
    append_processes(buffer, report);
    report_append_host(buffer, profile);
    buffer_print(buffer, "; %.2f s, ", report_seconds(summary->elapsed_ns));
    append_number(buffer, summary->threads_seen, "thread", "threads");
    buffer_print(buffer, "%s\n  recorded by: ", kept[profile->kept]);
    name_append_short(buffer, *command ? command : "not known", COMMAND_COLUMNS);
    if (profile->reason) {
        buffer_puts(buffer, "\n  reason: ");
        name_append_short(buffer, profile->reason, REASON_COLUMNS);
    }
    buffer_print(buffer, "\n  %.0f Hz: ", report_rate_hz(profile));
    append_number(buffer, summary->ticks_planned, "tick", "ticks");
    buffer_print(buffer, ", %.1f %% late; ",
                 report_percent(summary->ticks_late, summary->ticks_planned));
    append_number(buffer, summary->samples, "sample", "samples");
    buffer_print(buffer, ": %.1f %% cut, %.1f %% with an unnamed frame, %.1f %% assumed\n",
                 report_percent(summary->samples_cut, summary->samples),
                 report_percent(summary->samples_unnamed, summary->samples),
                 report_percent(summary->samples_assumed, summary->samples));
    append_capture(buffer, summary);
    if (summary->throttled_ns) {
        buffer_puts(buffer, "  ");
        report_append_throttled(buffer, summary);
        buffer_puts(buffer, "\n");
    }
}

static void append_findings(struct buffer *buffer, const struct report *report)
{
    const char *none = report->trees[REPORT_IDLE].total_ns ? " nothing stands out; see what is idle"
                                                           : " nothing stands out";
    buffer_print(buffer, "\nWorth a look:%s\n", report->finding_count ? "" : none);
    for (size_t i = 0; i < report->finding_count; i++) {
        buffer_print(buffer, "%3zu. %s\n", i + 1, report->findings[i].text);
        if (report->findings[i].detail)
            buffer_print(buffer, "     %s\n", report->findings[i].detail);
    }
}

static void append_critical(struct buffer *buffer, const struct fgprof_profile *profile)
{
    const struct profile_critical *critical = &profile->critical;
    double ticks = (double)(critical->ticks ? critical->ticks : 1);
    if (!critical->of)
        return;
    buffer_puts(buffer, "\nWhat ");
    name_append_short(buffer, critical->of, REPORT_NAME_COLUMNS);
    buffer_print(buffer, " waits for: %.2f s of %.2f s",
                 report_seconds(critical->waited * profile->period_ns),
                 report_seconds(critical->ticks * profile->period_ns));
    if (critical->inferred || critical->unknown)
        buffer_print(buffer, " (%.1f %% inferred, %.1f %% not followed to its end)",
                     100 * (double)critical->inferred / ticks,
                     100 * (double)critical->unknown / ticks);
    buffer_puts(buffer, "\n");
    for (size_t i = 0; i < CRITICAL_ENDS && critical->ends[i].ticks; i++) {
        buffer_print(buffer, "%8.2f s  ",
                     report_seconds(critical->ends[i].ticks * profile->period_ns));
        name_append_short(buffer, strings_get(&profile->strings, critical->ends[i].text),
                          REPORT_LINE_COLUMNS);
        buffer_puts(buffer, "\n");
    }
}

static void append_left_out(struct buffer *buffer, size_t count)
{
    if (count)
        buffer_print(buffer, "  and %zu more\n", count);
}

static void append_hold(struct buffer *buffer, const struct report *report,
                        const struct report_hold *hold, bool is_woken)
{
    const struct strings *strings = &report->profile->strings;
    const char *resource = strings_get(strings, hold->resource);
    const char *unknown =
        hold->is_for_threads && !is_woken ? "not sampled then" : "place not known";
    buffer_print(buffer, "%8.2f s  ", report_seconds(hold->time_ns));
    name_append_short(buffer, *resource ? resource : "[not known]", REPORT_FILE_COLUMNS);
    if (hold->is_for_threads) {
        buffer_puts(buffer, is_woken ? ", by thread \"" : ", of thread \"");
        name_append_short(buffer, strings_get(strings, hold->owner_name), REPORT_NAME_COLUMNS);
        buffer_puts(buffer, "\"");
    }
    buffer_print(buffer, "\n     %s was in: %s\n     waiters are in: %s\n",
                 is_woken ? "it" : "owner", *hold->owner_path ? hold->owner_path : unknown,
                 hold->waiter_path);
}

static void append_holds(struct buffer *buffer, const struct report *report,
                         const struct report_holds *holds, size_t max)
{
    bool is_woken = holds == &report->woken;
    size_t shown = holds->count < max ? holds->count : max;
    if (!holds->count)
        return;
    buffer_print(buffer,
                 is_woken ? "\nWoken by: %.2f s of waits without a known owner\n"
                          : "\nBlocked by: %.2f s of waits with a known owner\n",
                 report_seconds(holds->time_ns));
    for (size_t i = 0; i < shown; i++)
        append_hold(buffer, report, &holds->rows[i], is_woken);
    append_left_out(buffer, holds->count + holds->left_out - shown);
}

static void append_cpus(struct buffer *buffer, const struct report *report, size_t max)
{
    const struct report_holds *cpus = &report->cpus;
    size_t shown = cpus->count < max ? cpus->count : max;
    if (!cpus->count)
        return;
    buffer_print(buffer, "\nWaiting for a CPU: %.2f s, the use of the CPU is known for %.2f s\n",
                 report_seconds(report->times.state_ns[FGPROF_STATE_RUNNABLE]),
                 report_seconds(cpus->time_ns));
    for (size_t i = 0; i < shown; i++) {
        const struct report_hold *hold = &cpus->rows[i];
        buffer_print(buffer, "%8.2f s  ", report_seconds(hold->time_ns));
        report_append_cpu_user(buffer, report, hold);
        if (*hold->owner_path)
            buffer_print(buffer, "\n     that was in: %s", hold->owner_path);
        buffer_print(buffer, "\n     waiters are in: %s\n", hold->waiter_path);
    }
    append_left_out(buffer, cpus->count + cpus->left_out - shown);
}

/* The columns and a line for each path, and how many more there are. */
static void append_paths(struct buffer *buffer, const struct report *report,
                         enum report_activity activity, size_t max)
{
    const struct report_paths *paths = &report->paths[activity];
    const struct call_tree *tree = &report->trees[activity];
    size_t shown = paths->count < max ? paths->count : max;
    size_t left_out = paths->count + paths->left_out - shown;
    bool has_calls = activity != REPORT_RUNNING;
    if (!shown)
        return;
    buffer_print(buffer, "    SELF s   TOTAL s  THREADS  %s",
                 activity == REPORT_IDLE ? "NEVER WOKE  " : "");
    if (has_calls)
        buffer_print(buffer, "%-*s", CALL_COLUMNS + 2,
                     activity == REPORT_ELAPSED ? "STATE OR CALL" : "CALL");
    uint32_t nodes[REPORT_PATHS_MAX];
    struct row_paths row_paths;
    for (size_t i = 0; i < shown; i++)
        nodes[i] = paths->rows[i].node;
    row_paths_make(&row_paths, tree, &report->labels, nodes, shown);
    buffer->error = row_paths.error ? row_paths.error : buffer->error;
    row_paths_append_title(buffer, &row_paths);
    for (size_t i = 0; i < shown && !row_paths.error; i++) {
        const struct report_path *row = &paths->rows[i];
        const struct call_node *node = &tree->nodes[row->node];
        buffer_print(buffer, "%10.2f %9.2f %8zu  ", report_seconds(node->self_ns),
                     report_seconds(node->total_ns), row->threads);
        if (activity == REPORT_IDLE)
            buffer_print(buffer, "%10zu  ", row->unmoved);
        if (has_calls) {
            size_t from = buffer->length;
            name_append_short(buffer, label_text(&report->labels, row->call), CALL_COLUMNS);
            size_t used = buffer->error ? CALL_COLUMNS
                                        : utf8_columns(buffer->bytes + from, buffer->length - from);
            buffer_print(buffer, "%*s", CALL_COLUMNS + 2 - (int)used, "");
        }
        buffer_write(buffer, row_paths.rows[i].text.bytes, row_paths.rows[i].text.length);
        buffer_puts(buffer, "\n");
    }
    row_paths_free(&row_paths);
    append_left_out(buffer, left_out);
}

static void append_thread_time(struct buffer *buffer, const struct report *report,
                               enum report_activity activity, const char *title, size_t max)
{
    buffer_print(buffer, "\n%s: %.2f s of thread time\n", title,
                 report_seconds(report->trees[activity].total_ns));
    append_paths(buffer, report, activity, max);
}

static void append_elapsed(struct buffer *buffer, const struct report *report, size_t max)
{
    const struct fgprof_profile *profile = report->profile;
    uint64_t used_ns = report->trees[REPORT_ELAPSED].total_ns;
    if (!profile->has_elapsed)
        return;
    buffer_print(buffer, "\nWhere time went: %.2f s ",
                 report_seconds(used_ns + report->elapsed_idle_ns));
    if (profile->process_count > 1)
        buffer_print(buffer, "in all, of %zu processes in %.2f s", profile->process_count,
                     report_seconds(profile->summary.elapsed_ns));
    else
        buffer_puts(buffer, "elapsed");
    buffer_print(buffer, ", %.2f s of it idle", report_seconds(report->elapsed_idle_ns));
    if (profile->parallel_count)
        buffer_print(buffer,
                     "; parallelism: no thread running %.1f %% of the time, 1 for %.1f %%, more "
                     "for %.1f %%",
                     report_parallel_percent(report, 0, 0), report_parallel_percent(report, 1, 1),
                     report_parallel_percent(report, 2, SIZE_MAX));
    buffer_puts(buffer, "\n");
    append_paths(buffer, report, REPORT_ELAPSED, max);
}

/* Pads the line that begins at `from`, and appends the times in seconds. */
static void append_times(struct buffer *buffer, size_t from, const struct report_times *times)
{
    size_t used = buffer->error ? 0 : utf8_columns(buffer->bytes + from, buffer->length - from);
    uint64_t waiting_ns = times->state_ns[FGPROF_STATE_WAITING] - times->idle_ns;
    uint64_t other_ns =
        times->state_ns[FGPROF_STATE_STOPPED] + times->state_ns[FGPROF_STATE_UNKNOWN];
    buffer_print(buffer, "%*s %9.2f %9.2f %9.2f %9.2f %9.2f\n",
                 used < ROW_COLUMNS ? (int)(ROW_COLUMNS - used) : 0, "",
                 report_seconds(times->state_ns[FGPROF_STATE_RUNNING]),
                 report_seconds(times->state_ns[FGPROF_STATE_RUNNABLE]), report_seconds(waiting_ns),
                 report_seconds(times->idle_ns), report_seconds(other_ns));
}

static void append_threads(struct buffer *buffer, const struct report *report)
{
    uint32_t busiest[REPORT_THREADS_MAX];
    size_t count = report_busiest(report, busiest, REPORT_THREADS_MAX), from;

    buffer_print(buffer, "\n%-*s%10s%10s%10s%10s%10s\n", ROW_COLUMNS, "Thread time in seconds",
                 "RUNNING", "FOR A CPU", "WAITING", "IDLE", "OTHER");
    for (size_t i = 0; i < report->profile->process_count && i < REPORT_PROCESSES_MAX; i++) {
        from = buffer->length;
        buffer_puts(buffer, "  ");
        report_append_process(buffer, report, (uint32_t)i);
        buffer_puts(buffer, ", ");
        append_number(buffer, report->processes[i].threads, "thread", "threads");
        append_times(buffer, from, &report->processes[i].times);
    }
    if (report->profile->process_count > REPORT_PROCESSES_MAX)
        buffer_print(buffer, "  and %zu more processes\n",
                     report->profile->process_count - REPORT_PROCESSES_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct report_thread *thread = &report->threads[busiest[i]];
        from = buffer->length;
        buffer_puts(buffer, "    ");
        if (thread->is_goroutine)
            buffer_puts(buffer, "goroutine ");
        report_append_thread(buffer, report, thread);
        append_times(buffer, from, &thread->times);
    }
    if (report->thread_count - report->idle_threads > count)
        buffer_print(buffer, "    and %zu more\n",
                     report->thread_count - report->idle_threads - count);
}

static void append_modules(struct buffer *buffer, const struct report *report)
{
    const struct strings *strings = &report->profile->strings;
    if (!report->module_count)
        return;
    buffer_puts(buffer,
                "\nSymbols that would help (Debian: PACKAGE-dbg or PACKAGE-dbgsym, see dpkg -S "
                "FILE; or record with --debuginfod):\n");
    for (size_t i = 0; i < report->module_count; i++) {
        const struct report_module *row = &report->modules[i];
        buffer_puts(buffer, "  ");
        name_append_short(buffer, strings_get(strings, row->path), REPORT_FILE_COLUMNS);
        buffer_print(buffer, ": %" PRIu64 " cut, %" PRIu64 " unnamed", row->samples_cut,
                     row->samples_unnamed);
        if (row->build_id) {
            buffer_puts(buffer, ", build id ");
            name_append_short(buffer, strings_get(strings, row->build_id), REPORT_NAME_COLUMNS * 2);
        }
        buffer_puts(buffer, "\n");
    }
    append_left_out(buffer, report->modules_left_out);
}

/* Shows up to `max` paths of threads' time on a CPU and in waits, and up to `others_max` rows of
 * each other table that may be long. */
static void append_all(struct buffer *buffer, const struct report *report, size_t max,
                       size_t others_max)
{
    append_head(buffer, report);
    append_critical(buffer, report->profile);
    append_findings(buffer, report);
    append_holds(buffer, report, &report->held, others_max);
    append_holds(buffer, report, &report->woken, others_max);
    append_cpus(buffer, report, others_max);
    append_elapsed(buffer, report, others_max);
    append_thread_time(buffer, report, REPORT_RUNNING, "On a CPU", max);
    append_thread_time(buffer, report, REPORT_WAITING, "Waiting", max);
    if (report->trees[REPORT_IDLE].total_ns)
        append_thread_time(buffer, report, REPORT_IDLE, "Idle",
                           others_max < REPORT_IDLE_MAX ? others_max : REPORT_IDLE_MAX);
    append_threads(buffer, report);
    append_modules(buffer, report);
    buffer_puts(buffer, "\nNext, ");
    buffer_puts(buffer, report->next_why);
    buffer_puts(buffer, ":\n  ");
    name_append(buffer, report->next);
    buffer_puts(buffer, "\n");
}

static size_t lines_of(const struct buffer *buffer)
{
    size_t lines = 0;
    for (size_t i = 0; i < buffer->length; i++)
        lines += buffer->bytes[i] == '\n';
    return lines;
}

void report_text(const struct report *report, struct sink *sink)
{
    struct buffer buffer = {0};
    size_t max = REPORT_PATHS_MAX, others_max = REPORT_PATHS_MAX;
    append_all(&buffer, report, max, others_max);
    while (lines_of(&buffer) > REPORT_LINES_MAX && others_max > 1) {
        *(max > REPORT_PATHS_MIN ? &max : &others_max) -= 1;
        buffer.length = 0;
        append_all(&buffer, report, max, others_max);
    }
    sink_put(sink, &buffer);
}
