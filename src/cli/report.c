#include "cli/report.h"
#include "cli/escape.h"
#include "cli/output_file.h"
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MODULES_SHOWN 5
#define PAUSE_LONG_NS 2000000 /* of a longer pause, this much is charged to --max-pause */

/* Writes a duration with a suitable unit. */
static const char *readable(uint64_t ns, char *buffer, size_t buffer_bytes)
{
    if (ns < 1000000)
        snprintf(buffer, buffer_bytes, "%.0f us", (double)ns / 1e3);
    else if (ns < 1000000000)
        snprintf(buffer, buffer_bytes, "%.1f ms", (double)ns / 1e6);
    else
        snprintf(buffer, buffer_bytes, "%.1f s", (double)ns / 1e9);
    return buffer;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void summarize_states(const struct fgprof_summary *summary)
{
    uint64_t all_ns = summary->running_ns + summary->runnable_ns + summary->waiting_ns +
                      summary->stopped_ns + summary->unknown_ns;
    fprintf(stderr, "  thread time: %.1f %% running, %.1f %% waiting for a CPU, %.1f %% asleep",
            percent(summary->running_ns, all_ns), percent(summary->runnable_ns, all_ns),
            percent(summary->waiting_ns, all_ns));
    if (summary->stopped_ns)
        fprintf(stderr, ", %.1f %% stopped", percent(summary->stopped_ns, all_ns));
    if (summary->unknown_ns)
        fprintf(stderr, ", %.1f %% unknown", percent(summary->unknown_ns, all_ns));
    fputc('\n', stderr);
}

static void summarize_choice(const struct cli_options *options,
                             const struct fgprof_summary *summary)
{
    if (options->thread_regex || options->tid_count) {
        fprintf(stderr, "  %" PRIu64 " of %" PRIu64 " threads were chosen\n",
                summary->threads_chosen, summary->threads_seen);
    }
    if (options->drops_idle) {
        bool is_one = summary->threads_idle == 1;
        fprintf(stderr, "  %" PRIu64 " %s left out (%.1f s of thread time)\n",
                summary->threads_idle,
                is_one ? "thread never moved and was" : "threads never moved and were",
                (double)summary->idle_ns / 1e9);
    }
}

static void summarize_jit(const struct fgprof_summary *summary)
{
    if (summary->jit_files_refused) {
        fprintf(stderr,
                "  a perf map or jitdump was not read: it must be a regular file that belongs "
                "to the process's user or root and is no older than the process\n");
    }
    if (summary->jit_bytes_unread) {
        fprintf(stderr, "  %.1f MB of perf maps or jitdumps were not read: too large or damaged\n",
                (double)summary->jit_bytes_unread / 1e6);
    }
}

static void summarize_unreadable(const fgprof_profile *profile, uint64_t count)
{
    if (!count)
        return;
    fprintf(stderr, "  %" PRIu64 " %s could not be read: ", count,
            count == 1 ? "module" : "modules");
    for (size_t i = 0; i < count && i < MODULES_SHOWN; i++) {
        fputs(i ? ", " : "", stderr);
        print_escaped(fgprof_profile_unreadable_module(profile, i));
    }
    fputs(count > MODULES_SHOWN ? ", ...\n" : "\n", stderr);
}

static void summarize_processes(const struct fgprof_summary *summary)
{
    if (summary->processes_seen > 1 || summary->processes_refused)
        fprintf(stderr, "  %" PRIu64 " processes seen", summary->processes_seen);
    if (summary->processes_refused)
        fprintf(stderr, "; %" PRIu64 " more could not be sampled", summary->processes_refused);
    if (summary->processes_seen > 1 || summary->processes_refused)
        fputc('\n', stderr);
}

/* Losses and limits that a recording usually does not meet: nothing is printed then. */
static void summarize_exceptions(const fgprof_profile *profile,
                                 const struct fgprof_summary *summary)
{
    summarize_unreadable(profile, summary->modules_unreadable);
    if (summary->samples_not_captured) {
        fprintf(stderr, "  %.2f %% of samples have no stack: their threads did not stop in time\n",
                percent(summary->samples_not_captured, summary->samples));
    }
    if (summary->samples_assumed) {
        fprintf(stderr,
                "  %.2f %% of samples are assumed: a thread that had slept for long moved between "
                "two looks\n",
                percent(summary->samples_assumed, summary->samples));
    }
    if (summary->observations_put_off) {
        fprintf(stderr,
                "  %" PRIu64 " %s made later, because unwinding was behind: the next samples count "
                "that time\n",
                summary->observations_put_off,
                summary->observations_put_off == 1 ? "look at a thread was"
                                                   : "looks at threads were");
    }
    summarize_jit(summary);
    if (summary->timeline_lost_ns) {
        fprintf(stderr,
                "  the timelines are full and end early: they lack %.1f s of thread time, which is "
                "counted elsewhere\n",
                (double)summary->timeline_lost_ns / 1e9);
    }
    if (summary->lacks_files) {
        fprintf(stderr,
                "  the limit of open files is too low for so many threads: raise it (ulimit "
                "-n) to make sampling cheaper\n");
    }
}

/* The limit is each thread's. All threads together can exceed it too: a thread may be paused for a
 * moment before it has run, and of a long pause only a part is charged. */
static void summarize_pause_limit(const struct cli_options *options,
                                  const struct fgprof_summary *summary)
{
    double limit = options->max_pause_percent;
    if (100 * summary->pause_share > limit) {
        fprintf(stderr, "  that is more than --max-pause allows (%g %%): %s\n", limit,
                summary->pause_max_ns > PAUSE_LONG_NS
                    ? "some pauses were long, as on a busy machine"
                    : "the threads ran too briefly to make up for their first pauses");
    }
    if (summary->samples_thinned) {
        fprintf(stderr,
                "  %" PRIu64 " %s skipped, because the thread had spent the %g %% that --max-pause "
                "allows\n",
                summary->samples_thinned,
                summary->samples_thinned == 1 ? "more pause was" : "more pauses were", limit);
    }
}

static void summarize_pauses(const struct cli_options *options,
                             const struct fgprof_summary *summary)
{
    char median[32], p99[32], max[32];
    if (!summary->pauses) {
        fprintf(stderr, "  no thread was found running\n");
        return;
    }
    fprintf(stderr,
            "  running threads were paused %" PRIu64
            " times: %s median, %s p99, %s max; %.2f %% of their running time\n",
            summary->pauses, readable(summary->pause_median_ns, median, sizeof median),
            readable(summary->pause_p99_ns, p99, sizeof p99),
            readable(summary->pause_max_ns, max, sizeof max), 100 * summary->pause_share);
    summarize_pause_limit(options, summary);
}

static void summarize(const struct cli_options *options, const fgprof_profile *profile,
                      const struct fgprof_summary *summary)
{
    fprintf(stderr,
            "fgprof-c: %.1f s at %u Hz: %" PRIu64 " ticks planned, %" PRIu64 " taken, %" PRIu64
            " late\n",
            (double)summary->elapsed_ns / 1e9, options->rate_hz, summary->ticks_planned,
            summary->ticks_taken, summary->ticks_late);
    /* One static function of a stripped program can leave an unnamed frame in every stack. */
    fprintf(stderr,
            "  %" PRIu64 " threads seen, %" PRIu64 " samples, %" PRIu64
            " distinct stacks; %.2f %% cut, %.2f %% with an unnamed frame%s\n",
            summary->threads_seen, summary->samples, summary->stacks,
            percent(summary->samples_cut, summary->samples),
            percent(summary->samples_unnamed, summary->samples),
            summary->samples_unnamed ? " (often just one)" : "");
    summarize_processes(summary);
    summarize_choice(options, summary);
    summarize_states(summary);
    summarize_exceptions(profile, summary);
    summarize_pauses(options, summary);
}

bool report(const struct cli_options *options, fgprof_profile *profile, struct output_file *file)
{
    progress_clear(options);
    int err = options_for_profile(options, profile);
    if (!err)
        err = fgprof_profile_set_command(profile, options->command_line);
    if (!err)
        err = fgprof_profile_write(profile, options->format, file->fd);
    if (!err)
        err = output_file_commit(file);
    if (err) {
        fprintf(stderr, "fgprof-c: the profile could not be written to %s: %s\n",
                output_file_name(options->output), strerror(-err));
        output_file_abandon(file);
    }
    struct fgprof_summary summary;
    fgprof_profile_summary(profile, &summary, sizeof summary);
    if (!options->is_quiet)
        summarize(options, profile, &summary);
    if (summary.error)
        fprintf(stderr, "fgprof-c: sampling ended early: %s\n", strerror(-summary.error));
    return !err && !summary.error;
}
