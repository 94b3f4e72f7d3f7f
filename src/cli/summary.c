#include "cli/summary.h"
#include "cli/critical.h"
#include "cli/options/formats.h"
#include "cli/say.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/refusal.h"
#include "base/buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MODULES_SHOWN 5
#define SHORT_TICKS 2u
#define KEPT_BYTES_SHOWN (64u << 20) /* of memory: less need not be mentioned */
#define KEPT_PART_SHOWN 50
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

/* Prints how many there were, if any, with the text for one or for many. */
static void say_count(uint64_t count, const char *one, const char *many, const char *rest)
{
    if (count)
        say_more("%" PRIu64 " %s%s", count, count == 1 ? one : many, rest);
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

/* What kept CPUs from threads, besides others. */
static void summarize_cpu_losses(const struct fgprof_summary *summary)
{
    char throttled[32], steal[32];
    if (summary->throttled_ns && summary->quota_millicpu)
        fprintf(stderr, "  throttled %s by its control group's quota of %g %s\n",
                readable(summary->throttled_ns, throttled, sizeof throttled),
                (double)summary->quota_millicpu / 1e3,
                summary->quota_millicpu == 1000 ? "CPU" : "CPUs");
    else if (summary->throttled_ns)
        fprintf(stderr, "  throttled %s by its control group's quota\n",
                readable(summary->throttled_ns, throttled, sizeof throttled));
    if (summary->steal_ns)
        fprintf(stderr, "  steal: the hypervisor took %s of the machine's CPUs\n",
                readable(summary->steal_ns, steal, sizeof steal));
}

/* The sum of the rows from `first` to `last`. */
static uint64_t parallel_ns(const fgprof_profile *profile, size_t first, size_t last)
{
    uint64_t row_ns, sum_ns = 0;
    for (size_t i = first; i <= last && !fgprof_profile_parallelism(profile, i, &row_ns); i++)
        sum_ns += row_ns;
    return sum_ns;
}

static void print_parallel(size_t first, size_t last, double share, bool has_begun)
{
    fputs(has_begun ? ", " : "  parallelism: ", stderr);
    if (first == 0)
        fputs("no", stderr);
    else
        fprintf(stderr, "%zu", first);
    if (last > first)
        fprintf(stderr, "-%zu", last);
    fprintf(stderr,
            has_begun    ? " for %.1f %%"
            : first == 0 ? " thread running %.1f %% of the time"
                         : " running %.1f %% of the time",
            share);
}

/* Above 2 threads, rows that double each, so that there are few: 0, 1, 2, 3-4, 5-8 ... */
static void summarize_parallelism(const fgprof_profile *profile)
{
    uint64_t all_ns = parallel_ns(profile, 0, SIZE_MAX - 1), row_ns;
    bool has_begun = false;
    if (!all_ns)
        return;
    for (size_t first = 0, last = 0; !fgprof_profile_parallelism(profile, first, &row_ns);) {
        uint64_t sum_ns = parallel_ns(profile, first, last);
        if (sum_ns >= all_ns / 1000) {
            print_parallel(first, last, percent(sum_ns, all_ns), has_begun);
            has_begun = true;
        }
        first = last + 1;
        last = last < 2 ? first : 2 * last;
    }
    fputc('\n', stderr);
}

static void summarize_choice(const struct cli_options *options,
                             const struct fgprof_summary *summary)
{
    if (options->thread_regex || options->tid_count)
        say_more("%" PRIu64 " of %" PRIu64 " threads were chosen", summary->threads_chosen,
                 summary->threads_seen);
    if (options->drops_idle)
        say_more("%" PRIu64 " %s left out (%.1f s of thread time)", summary->threads_idle,
                 summary->threads_idle == 1 ? "thread never moved and was"
                                            : "threads never moved and were",
                 (double)summary->idle_ns / 1e9);
}

static void summarize_jit(const struct fgprof_summary *summary)
{
    if (summary->jit_files_refused)
        say_more("a perf map or jitdump was not read: it must be a regular file that belongs to "
                 "the process's user or root and is no older than the process");
    if (summary->jit_bytes_unread)
        say_more("%.1f MB of perf maps or jitdumps were not read: too large or damaged",
                 (double)summary->jit_bytes_unread / 1e6);
}

static void summarize_unreadable(const fgprof_profile *profile, uint64_t count)
{
    if (!count)
        return;
    fprintf(stderr, "  %" PRIu64 " %s could not be read: ", count,
            count == 1 ? "module" : "modules");
    for (size_t i = 0; i < count && i < MODULES_SHOWN; i++) {
        fputs(i ? ", " : "", stderr);
        put_escaped(stderr, fgprof_profile_unreadable_module(profile, i));
    }
    fputs(count > MODULES_SHOWN ? ", ...\n" : "\n", stderr);
}

static void summarize_processes(const struct fgprof_summary *summary)
{
    if (summary->processes_refused)
        say_more("%" PRIu64 " processes seen; %" PRIu64 " more could not be sampled",
                 summary->processes_seen, summary->processes_refused);
    else if (summary->processes_seen > 1)
        say_more("%" PRIu64 " processes seen", summary->processes_seen);
}

static void summarize_deadlocks(const fgprof_profile *profile)
{
    const char *line;
    for (size_t i = 0; (line = fgprof_profile_deadlock(profile, i)); i++)
        say_more("%s", line);
}

static void summarize_critical(const struct fgprof_summary *summary)
{
    if (summary->critical_ns)
        say_more("critical path: %.2f s of %.2f s waiting; %.1f %% of the path inferred, %.1f %% "
                 "not followed to its end",
                 (double)summary->critical_waited_ns / 1e9, (double)summary->critical_ns / 1e9,
                 percent(summary->critical_inferred_ns, summary->critical_ns),
                 percent(summary->critical_unknown_ns, summary->critical_ns));
    if (summary->critical_ns && summary->critical_lost_ns)
        say_more("it lacks the end of the recording: %.1f s of thread time were too many",
                 (double)summary->critical_lost_ns / 1e9);
}

/* What threads said of their work, if they said anything. */
static void summarize_labels(const struct cli_options *options,
                             const struct fgprof_summary *summary)
{
    char later[128] = "";
    if (summary->labels_later)
        snprintf(later, sizeof later,
                 "; %" PRIu64 " of them up to a tick after the sample of a running thread, which "
                 "may have had others",
                 summary->labels_later);
    if (summary->labels_read)
        say_more("labels were read %" PRIu64 " %s%s", summary->labels_read,
                 summary->labels_read == 1 ? "time" : "times", later);
    else if (options->label_count && !summary->goroutine_ns) /* which have labels of their own */
        say_more("no labels were found: the program sets none, or they could not be read in time");
    if (summary->spans_kept || summary->spans_dropped)
        say_more("%" PRIu64 " slow %s kept, %" PRIu64
                 " shorter %s left out (%.1f s of thread time)",
                 summary->spans_kept, summary->spans_kept == 1 ? "span was" : "spans were",
                 summary->spans_dropped, summary->spans_dropped == 1 ? "one was" : "ones were",
                 (double)summary->spans_dropped_ns / 1e9);
    say_count(summary->labels_changed, "time labels", "times labels",
              " changed while they were read: those samples have none");
    say_count(summary->labels_unreadable, "time labels", "times labels",
              " could not be read: of threads that sleep, only glibc shows where they are");
    say_count(summary->labels_bad, "time a label", "times a label",
              " was left out, as it was not UTF-8");
    say_count(summary->labels_limited, "time labels", "times labels",
              " had more different keys or values than are kept, and were left out or shown as "
              "[other]");
}

/* Which functions of Python there are. */
static void summarize_python(const struct fgprof_summary *summary)
{
    uint64_t missing = summary->python_stacks_missing, version = summary->python_version;
    uint32_t number = (uint32_t)version;
    const char *why = version & FGPROF_PYTHON_FREE_THREADED ? " without a GIL"
                      : version & FGPROF_PYTHON_BESIDE      ? " beside another one in its process"
                                                            : "";
    if (missing)
        say_more("Python functions are not known in %" PRIu64 " of %" PRIu64
                 " stacks of Python threads: these have the interpreter's own",
                 missing, missing + summary->python_stacks);
    if (number == 1)
        say_more("Python before 3.9%s is not read: its stacks have the interpreter's own functions",
                 why);
    else if (version)
        say_more("Python %" PRIu32 ".%" PRIu32
                 "%s is not read: its stacks have the interpreter's own functions",
                 number >> 24, number >> 16 & 0xff, why);
}

/* Which tasks of asyncio there are. */
static void summarize_tasks(const struct fgprof_summary *summary)
{
    if (summary->task_ns)
        say_more("asyncio tasks that were suspended: %.1f task-seconds",
                 (double)summary->task_ns / 1e9);
    say_count(summary->tasks_moved, "time a task", "times a task",
              " went on while it was read, and was not counted then");
    say_count(summary->tasks_cut, "list of tasks was not read to its end",
              "lists of tasks were not read to their ends",
              ": there were too many tasks for the time, or they changed meanwhile");
    if (summary->tasks_version)
        say_more("asyncio tasks of Python %" PRIu64 ".%" PRIu64 " are not read",
                 summary->tasks_version >> 24, summary->tasks_version >> 16 & 0xff);
}

/* Which goroutines there are. */
static void summarize_go(const struct fgprof_summary *summary)
{
    uint64_t version = summary->go_version & ~(uint64_t)FGPROF_GO_WITHOUT_LIST;
    if (summary->goroutine_ns || summary->threads_without_goroutine_ns)
        say_more("goroutines that waited: %.1f goroutine-seconds; threads without a goroutine were "
                 "left out (%.1f s)",
                 (double)summary->goroutine_ns / 1e9,
                 (double)summary->threads_without_goroutine_ns / 1e9);
    say_count(summary->goroutines_moved, "time a goroutine", "times a goroutine",
              " went on while it was read, and was not counted then");
    say_count(summary->goroutines_left_out, "more goroutine was", "more goroutines were",
              " not read: there were too many");
    say_count(summary->goroutines_unreadable, "goroutine", "goroutines",
              " could not be read, or made no sense");
    if (version == 1)
        say_more("goroutines of this version of Go are not read: its threads are shown");
    else if (version)
        say_more("goroutines of Go 1.%" PRIu64 " are not read%s: its threads are shown", version,
                 version != summary->go_version ? ", as no list of them makes sense" : "");
}

/* Losses and limits that a recording usually does not meet: nothing is printed then. */
static void summarize_exceptions(const fgprof_profile *profile,
                                 const struct fgprof_summary *summary)
{
    summarize_critical(summary);
    summarize_deadlocks(profile);
    summarize_python(summary);
    summarize_tasks(summary);
    summarize_go(summary);
    summarize_unreadable(profile, summary->modules_unreadable);
    if (summary->samples_not_captured)
        say_more("%.2f %% of samples have no stack: their threads could not be observed in time",
                 percent(summary->samples_not_captured, summary->samples));
    if (summary->samples_assumed)
        say_more("%.2f %% of samples are assumed: the thread woke between two observations after a "
                 "long sleep, or was first observed late",
                 percent(summary->samples_assumed, summary->samples));
    say_count(summary->observations_put_off, "sample was", "samples were",
              " delayed, because unwinding fell behind: the next samples count that time");
    summarize_jit(summary);
    say_count(summary->waits_limited, "wait was", "waits were",
              " for more different locks, files and so on than are kept: these are shown as "
              "[other]");
    if (summary->timeline_lost_ns)
        say_more("the timelines are full and end early: they lack %.1f s of thread time, which is "
                 "counted elsewhere",
                 (double)summary->timeline_lost_ns / 1e9);
    if (summary->lacks_files)
        say_more("the limit on open files is too low for so many threads: raise it (ulimit -n) to "
                 "make sampling cheaper");
}

/* The limit is per thread. All threads together can exceed it too: a thread may be paused for a
 * moment before it has run, and only part of a long pause is charged. */
static void summarize_pause_limit(const struct cli_options *options,
                                  const struct fgprof_summary *summary)
{
    double limit = options->max_pause_percent;
    if (100 * summary->pause_share > limit)
        say_more("that is more than --max-pause allows (%g %%): %s", limit,
                 summary->pause_max_ns > PAUSE_LONG_NS
                     ? "some pauses were long, as on a busy machine"
                     : "the threads ran too briefly to make up for their first pauses");
    if (summary->samples_thinned)
        say_more("%" PRIu64
                 " %s skipped, because the thread had spent the %g %% that --max-pause allows",
                 summary->samples_thinned,
                 summary->samples_thinned == 1 ? "more pause was" : "more pauses were", limit);
}

static void summarize_pauses(const struct cli_options *options,
                             const struct fgprof_summary *summary)
{
    char median[32], p99[32], max[32];
    say_more("running threads were paused %" PRIu64
             " times: %s median, %s p99, %s max; %.2f %% of their running time",
             summary->pauses, readable(summary->pause_median_ns, median, sizeof median),
             readable(summary->pause_p99_ns, p99, sizeof p99),
             readable(summary->pause_max_ns, max, sizeof max), 100 * summary->pause_share);
    summarize_pause_limit(options, summary);
}

/* Losses of samples that the kernel took. */
static void summarize_kernel_losses(const struct fgprof_summary *summary)
{
    if (summary->kernel_samples_lost)
        say_more("the kernel dropped %" PRIu64 " %s, because too many came at once",
                 summary->kernel_samples_lost,
                 summary->kernel_samples_lost == 1 ? "record" : "records");
    say_count(summary->kernel_samples_dropped, "sample was", "samples were",
              " of threads that ended before they were listed");
}

static const char *reason(int error)
{
    return error == ENOSPC ? "the limit on events is reached" : strerror(error);
}

static void summarize_lacking(uint64_t count, const char *one, const char *many, int error)
{
    if (count)
        say_more("%" PRIu64 " %s (%s)%s", count, count == 1 ? one : many, reason(error),
                 refusal_remedy(error));
}

/* What should have had an event. */
static void summarize_events(const struct fgprof_summary *summary)
{
    summarize_lacking(summary->threads_without_event,
                      "thread was stopped while it ran, as there could be no event for it",
                      "threads were stopped while they ran, as there could be no events for them",
                      summary->event_refusal);
    say_count(summary->threads_unsampled,
              "thread ran for long without being sampled by the kernel, and was",
              "threads ran for long without being sampled by the kernel, and were",
              " stopped then");
    summarize_lacking(
        summary->threads_waits_unseen,
        "thread's waits for a CPU are counted where it ran, as there could be no event for them",
        "threads' waits for a CPU are counted where they ran, as there could be no events for them",
        summary->waits_refusal);
}

static void summarize_filter(const struct fgprof_summary *summary)
{
    int error = (int)summary->filter_refusal;
    /* What would help may have been said of the record. */
    if (error)
        say_more("the kernel may not filter samples (%s), so those of other processes were dropped "
                 "when they were read, which costs more%s",
                 strerror(error),
                 error == summary->record_refusal ? "" : refusal_bpf_remedy(error));
}

/* What tells where threads were at the ticks. */
static void summarize_sources(const struct cli_options *options,
                              const struct fgprof_summary *summary)
{
    say_more("captured by %s and %s",
             summary->has_switch_record ? "switch record" : "looks at /proc",
             summary->has_kernel_samples ? "kernel samples" : "stops");
    say_count(summary->recorded_lost, "wait came too fast to be counted where it was",
              "waits came too fast to be counted where they were", "");
    say_count(summary->wakes_lost, "wait ended", "waits ended",
              " when too many did at once: what ended them is not known");
    say_count(summary->hidden_returns, "return of a thread to a CPU was",
              "returns of threads to a CPU were",
              " hidden by the kernel: when that was is computed from how long the thread ran");
    say_count(summary->switches_unrecorded, "switch of a thread was", "switches of threads were",
              " not recorded, as there are too many threads or too little memory: these were "
              "observed after the tick");
    if (summary->record_refusal)
        say_more(
            "the kernel may not record switches (%s), so threads were observed after the "
            "tick: %s%s%s",
            strerror(summary->record_refusal),
            summary->has_kernel_samples
                ? "shares of waits below about 300 us may be off by 4 percentage points, and by 30 "
                  "for Python, with --kernel, or beyond 16 busy threads"
                : "shares of waits below about 300 us, and of work below 100 us, may be off by 6 "
                  "percentage points, at 999 Hz by 10",
            refusal_record_remedy(summary->record_refusal),
            refusal_log_advice(options, summary->record_refusal));
    summarize_filter(summary);
}

/* Why --kernel shows no kernel frames of running threads. */
static void summarize_kernel_frames(const struct fgprof_summary *summary)
{
    int error = (int)summary->kernel_names_refusal;
    if (!summary->kernel_samples)
        say_more("running threads have no kernel frames, because they were stopped");
    else if (error == EACCES)
        say_more("running threads have no kernel frames, because /proc/kallsyms hides addresses; "
                 "CAP_SYSLOG and kernel.kptr_restrict of at most 1 would help");
    else if (error)
        say_more("running threads have no kernel frames, because /proc/kallsyms can't be read (%s)",
                 strerror(error));
}

/* How running threads were observed, and what that cost them. */
static void summarize_capture(const struct cli_options *options,
                              const struct fgprof_summary *summary)
{
    if (!summary->pauses && !summary->kernel_samples) {
        say_more("no thread was found running");
        return;
    }
    if (summary->kernel_samples)
        say_more("%" PRIu64 " %s sampled by the kernel while running: %" PRIu64
                 " %s, without a pause%s",
                 summary->threads_kernel_sampled,
                 summary->threads_kernel_sampled == 1 ? "thread was" : "threads were",
                 summary->kernel_samples, summary->kernel_samples == 1 ? "sample" : "samples",
                 summary->has_thread_events
                     ? "; each thread has its own event, which slows its context switches, as "
                       "events for CPUs are not permitted"
                     : "");
    summarize_kernel_losses(summary);
    summarize_events(summary);
    if (summary->pauses)
        summarize_pauses(options, summary);
    if (summary->kernel_refusal)
        say_more("the kernel may not sample running threads (%s), so they were stopped%s",
                 strerror(summary->kernel_refusal), refusal_remedy(summary->kernel_refusal));
    if (options->has_kernel_stacks)
        summarize_kernel_frames(summary);
}

/* Writes an amount of memory with a suitable unit. */
static const char *readable_bytes(uint64_t bytes, char *buffer, size_t buffer_bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double amount = (double)bytes / 1024;
    size_t unit = 0;
    for (; amount >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        amount /= 1024;
    if (bytes < 1024)
        snprintf(buffer, buffer_bytes, "%" PRIu64 " B", bytes);
    else
        snprintf(buffer, buffer_bytes, "%.*f %s", amount < 100 ? 1 : 0, amount, units[unit]);
    return buffer;
}

static void summarize_object_losses(const struct fgprof_summary *summary)
{
    say_count(summary->objects_made_lost, "more", "more",
              " could not be recorded, as they came too fast or were too many: a larger "
              "--heap-rate would help");
    say_count(summary->objects_gone_lost, "free was", "frees were",
              " missed, as they came too fast: what was freed then is shown as in use");
    if (summary->allocator_is_own)
        say_more("the program has an allocator of its own, whose allocations are not seen: --kind "
                 "growth shows where its memory grows");
}

/* The summary of a heap profile. */
static void summarize_heap(const struct fgprof_summary *summary)
{
    char rate[32], made[32], in_use[32];
    say("%.1f s: %" PRIu64 " %s sampled, one each %s on average", (double)summary->elapsed_ns / 1e9,
        summary->objects_made, summary->objects_made == 1 ? "allocation" : "allocations",
        readable_bytes(summary->objects_rate, rate, sizeof rate));
    say_more("about %s allocated, about %s of it in use at the end",
             readable_bytes(summary->objects_bytes, made, sizeof made),
             readable_bytes(summary->objects_bytes_in_use, in_use, sizeof in_use));
    say_more("%" PRIu64 " distinct %s; %.2f %% cut, %.2f %% with an unnamed frame", summary->stacks,
             summary->stacks == 1 ? "stack" : "stacks",
             percent(summary->samples_cut, summary->samples),
             percent(summary->samples_unnamed, summary->samples));
    summarize_object_losses(summary);
}

/* The summary of a profile that a program keeps itself. */
static void summarize_custom(const struct fgprof_summary *summary)
{
    uint64_t values = summary->objects_made - summary->objects_gone;
    say("%" PRIu64 " %s now", values, values == 1 ? "value" : "values");
    say_count(summary->objects_made_lost, "more", "more",
              " could not be read: their memory is damaged, or they are too many");
}

/* Why page faults were not chosen by their pages: without BPF, or without events of CPUs. */
static void summarize_pages(const struct fgprof_summary *summary)
{
    int error = (int)summary->filter_refusal;
    if (error)
        say_more("the kernel may not choose pages (%s), so one in so many page faults was "
                 "recorded: amounts are rough, and pages that were given back and touched again "
                 "may count for their first toucher%s",
                 strerror(error),
                 error == EACCES ? refusal_remedy(error) : refusal_bpf_remedy(error));
    if (summary->sees_user_only)
        say_more("pages that system calls touched first, such as read(2), are missing%s",
                 refusal_remedy(EACCES));
}

/* The summary of memory that grew, or of threads that were made. */
static void summarize_seen(enum fgprof_kind kind, const struct fgprof_summary *summary)
{
    bool is_growth = kind == FGPROF_KIND_GROWTH;
    bool is_one = summary->objects_made == 1;
    say("%.1f s: %" PRIu64 " %s", (double)summary->elapsed_ns / 1e9, summary->objects_made,
        is_growth ? (is_one ? "page fault" : "page faults") : (is_one ? "thread" : "threads"));
    say_count(summary->objects_made_lost, "more", "more",
              " could not be recorded, as they came too fast");
    summarize_pages(summary);
}

static void summarize_objects(const fgprof_profile *profile, const struct fgprof_summary *summary)
{
    enum fgprof_kind kind = fgprof_profile_kind(profile);
    if (kind == FGPROF_KIND_HEAP || kind == FGPROF_KIND_ALLOCS)
        summarize_heap(summary);
    else if (kind == FGPROF_KIND_CUSTOM)
        summarize_custom(summary);
    else
        summarize_seen(kind, summary);
    summarize_processes(summary);
    summarize_unreadable(profile, summary->modules_unreadable);
    summarize_jit(summary);
}

/* Not a state of threads that were never seen. */
static void summarize_nothing(const struct cli_options *options,
                              const struct fgprof_summary *summary)
{
    bool is_short = summary->elapsed_ns < SHORT_TICKS * 1000000000u / options->rate_hz;
    say_more("no thread was seen at a tick%s",
             is_short ? ": it ended too soon; try a higher --rate" : "");
    summarize_choice(options, summary);
}

static void summarize(const struct cli_options *options, const fgprof_profile *profile,
                      const struct fgprof_summary *summary)
{
    if (options_are_of_objects(options)) {
        summarize_objects(profile, summary);
        return;
    }
    say("%.1f s at %" PRIu64 " Hz: %" PRIu64 " ticks planned, %" PRIu64 " taken, %" PRIu64
        " late (seed %" PRIu64 ")",
        (double)summary->elapsed_ns / 1e9, options->rate_hz, summary->ticks_planned,
        summary->ticks_taken, summary->ticks_late, summary->seed);
    if (!summary->samples) {
        summarize_nothing(options, summary);
        return;
    }
    /* One static function of a stripped program can leave an unnamed frame in every stack. */
    say_more("%" PRIu64 " %s seen, %" PRIu64 " %s, %" PRIu64
             " distinct %s; %.2f %% cut, %.2f %% with an unnamed frame",
             summary->threads_seen, summary->threads_seen == 1 ? "thread" : "threads",
             summary->samples, summary->samples == 1 ? "sample" : "samples", summary->stacks,
             summary->stacks == 1 ? "stack" : "stacks",
             percent(summary->samples_cut, summary->samples),
             percent(summary->samples_unnamed, summary->samples));
    summarize_processes(summary);
    summarize_choice(options, summary);
    summarize_states(summary);
    summarize_cpu_losses(summary);
    summarize_parallelism(profile);
    summarize_exceptions(profile, summary);
    summarize_sources(options, summary);
    summarize_capture(options, summary);
    summarize_labels(options, summary);
}

/* What did not fit. */
static void summarize_not_kept(const struct fgprof_summary *summary)
{
    say_count(summary->processes_joined, "process that has", "processes that have",
              " ended are shown together, by name, to save memory (--keep-memory), and so are "
              "threads");
    if (!summary->processes_joined && summary->ended_are_joined)
        say_more("threads that have ended are shown together, by name, to save memory "
                 "(--keep-memory)");
    if (summary->samples_not_kept)
        say_more("%.2f %% of samples have no stack, as there were more different ones than fit in "
                 "memory (--keep-memory)",
                 percent(summary->samples_not_kept, summary->samples));
}

/* Prints how much memory is kept of what, if it is much or if some did not fit. */
static void summarize_memory(const fgprof_recorder *recorder, const struct fgprof_summary *summary)
{
    char amount[32];
    const char *name, *separator = ":";
    uint64_t bytes, all = 0;
    for (size_t i = 0; fgprof_recorder_kept_memory(recorder, i, &bytes); i++)
        all += bytes;
    summarize_not_kept(summary);
    if (all < KEPT_BYTES_SHOWN && !summary->ended_are_joined && !summary->samples_not_kept)
        return;
    fprintf(stderr, "  memory kept: %s", readable_bytes(all, amount, sizeof amount));
    for (size_t i = 0; (name = fgprof_recorder_kept_memory(recorder, i, &bytes)); i++) {
        if (bytes < all / KEPT_PART_SHOWN)
            continue;
        fprintf(stderr, "%s %s %s", separator, name, readable_bytes(bytes, amount, sizeof amount));
        separator = ",";
    }
    fputc('\n', stderr);
}

/* A file that was written. */
struct written {
    char *path; /* NULL: it has no name of its own */
    uint64_t bytes;
};

static int commit(struct output_file *file, struct written *ret_written)
{
    struct stat status;
    if (file->path && !fstat(file->fd, &status)) {
        ret_written->path = strdup(file->path);
        ret_written->bytes = (uint64_t)status.st_size;
    }
    return output_file_commit(file);
}

/* A machine to which one came by ssh(1) has no browser. */
static void say_written(enum fgprof_format format, const struct written *written)
{
    const char *viewer = format_of(format)->viewer;
    char size[32];
    struct buffer path = {0};
    buffer_put_quoted(&path, written->path);
    readable_bytes(written->bytes, size, sizeof size);
    if (format == FGPROF_HTML && getenv("SSH_CONNECTION"))
        say("wrote %s, %s: copy it, or let your browser in by ssh -L 8000:127.0.0.1:8000 and run "
            "python3 -m http.server 8000 --bind 127.0.0.1",
            written->path, size);
    else if (viewer && path.bytes)
        say("wrote %s, %s: %s %s", written->path, size, viewer, path.bytes);
    else
        say("wrote %s, %s", written->path, size);
    buffer_free(&path);
}

bool write_and_summarize(const struct cli_options *options, const fgprof_recorder *recorder,
                         fgprof_profile *profile, struct output_file *file)
{
    progress_clear(options);
    int critical_err = critical_make(options, profile);
    int err = critical_err ? critical_err : options_for_profile(options, profile);
    if (!err)
        err = fgprof_profile_write(profile, options->format, file->fd);
    struct written written = {0};
    if (!err)
        err = commit(file, &written);
    const char *page = written.path ? written.path : file->path;
    if (err && !critical_err)
        say("the profile could not be written to %s: %s",
            options->writes_page && page ? page : output_file_name(options->output),
            strerror(-err));
    if (err)
        output_file_abandon(file);
    struct fgprof_summary summary;
    fgprof_profile_summary(profile, &summary, sizeof summary);
    if (!options->is_quiet) {
        summarize(options, profile, &summary);
        summarize_memory(recorder, &summary);
    }
    if (summary.error)
        say("sampling ended early: %s", strerror(-summary.error));
    if (critical_err)
        critical_complain(options, NULL, critical_err);
    if (!options->is_quiet && !err && written.path)
        say_written(options->format, &written);
    free(written.path);
    return !err && !summary.error;
}
