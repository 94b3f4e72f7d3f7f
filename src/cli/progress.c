#include "cli/progress.h"
#include "base/clock.h"
#include "cli/say.h"
#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLEAR_LINE "\r\033[K" /* ECMA-48: go to the line's start, erase to its end */

static bool is_shown(const struct cli_options *options)
{
    return !options->is_quiet && isatty(STDERR_FILENO);
}

/* A profile so far names all functions, which takes long for large programs. */
#define NAMED_EVERY_NS 1000000000u
#define NAMING_PART_OF_TIME 50

static int compare_functions(const void *a, const void *b)
{
    const struct fgprof_activity *left = a, *right = b;
    return strcmp(left->function, right->function);
}

/* Sums up the time on a CPU by the program's own functions. */
static void find_busiest(const fgprof_activities *activities, struct progress *line)
{
    size_t all = fgprof_activities_count(activities), count = 0;
    struct fgprof_activity *rows = calloc(all + 1, sizeof *rows);
    uint64_t sum_ns = 0, most_ns = 0;
    for (size_t i = 0; rows && i < all; i++) {
        struct fgprof_activity *row = &rows[count];
        fgprof_activities_get(activities, i, row, sizeof *row);
        count += row->state == FGPROF_STATE_RUNNING && row->function;
    }
    array_sort(rows, count, compare_functions);
    for (size_t i = 0; i < count; i++) {
        bool is_same = i && compare_functions(&rows[i - 1], &rows[i]) == 0;
        sum_ns = (is_same ? sum_ns : 0) + rows[i].time_ns;
        if (sum_ns <= most_ns)
            continue;
        most_ns = sum_ns;
        snprintf(line->busiest, sizeof line->busiest, "%s", rows[i].function);
    }
    free(rows);
}

static void name_busiest(const struct fgprof_progress *progress, struct progress *line)
{
    fgprof_profile *profile;
    fgprof_activities *activities;
    uint64_t began_ns = monotonic_ns();
    if (!line->recorder || progress->elapsed_ns < NAMED_EVERY_NS ||
        !throttle_allows(&line->naming, began_ns, NAMED_EVERY_NS, NAMING_PART_OF_TIME))
        return;
    if (fgprof_recorder_profile_so_far(line->recorder, &profile) == 0) {
        if (fgprof_profile_activities(profile, &activities) == 0) {
            find_busiest(activities, line);
            fgprof_activities_free(activities);
        }
        fgprof_profile_free(profile);
    }
    line->naming = (struct throttle){began_ns, monotonic_ns() - began_ns};
}

/* The terminal would wrap a line that is longer than it is wide, and the next line would replace
 * only the last part. So one write tells the terminal to cut lines (DECAWM), and to wrap again
 * afterwards. */
#define NO_WRAP "\033[?7l"
#define WRAP "\033[?7h"

static void put_counts(FILE *out, const struct fgprof_progress *progress,
                       const struct progress *line)
{
    fprintf(out,
            "  %" PRIu64 " threads  %" PRIu64 " samples  %" PRIu64 " stacks  %" PRIu64
            " ticks late",
            progress->threads, progress->samples, progress->stacks, progress->ticks_late);
    if (*line->busiest) {
        fputs("  busiest: ", out);
        put_escaped(out, line->busiest);
    }
    if (!progress->duration_ns && line->options->command == COMMAND_ATTACH)
        fputs("  Ctrl-C to finish", out);
    if (progress->deadlocks)
        fprintf(out, "  %" PRIu64 " %s", progress->deadlocks,
                progress->deadlocks == 1 ? "deadlock" : "deadlocks");
}

static void show(const struct fgprof_progress *progress, void *context)
{
    struct progress *line = context;
    char *text = NULL;
    size_t bytes;
    bool is_of_time = !options_are_of_objects(line->options);
    if (is_of_time)
        name_busiest(progress, line);
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return;
    fprintf(out, CLEAR_LINE NO_WRAP "%.1f s", (double)progress->elapsed_ns / 1e9);
    if (progress->duration_ns)
        fprintf(out, " of %.1f s", (double)progress->duration_ns / 1e9);
    if (is_of_time)
        put_counts(out, progress, line);
    fputs(WRAP, out);
    if (fclose(out) == 0)
        fputs(text, stderr);
    free(text);
}

static void show_fetch(const char *path, double share, void *context)
{
    (void)context;
    fprintf(stderr, CLEAR_LINE "fetching debug information for ");
    put_escaped(stderr, basename(path));
    fprintf(stderr, ": %.0f %%", 100 * share);
    fflush(stderr);
}

bool progress_enable_fetch(const struct cli_options *options, fgprof_options *library)
{
    int err = fgprof_options_set_debuginfod(library, options->debuginfod_limit_ns,
                                            is_shown(options) ? show_fetch : NULL, NULL);
    return !err || say("--debuginfod needs libdebuginfod: install it (Debian: libdebuginfod1)");
}

void progress_enable(struct progress *progress, fgprof_options *library)
{
    if (is_shown(progress->options))
        fgprof_options_set_progress(library, show, progress);
}

void progress_clear(const struct cli_options *options)
{
    if (is_shown(options))
        fputs(CLEAR_LINE, stderr);
}
