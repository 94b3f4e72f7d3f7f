#include "cli/progress.h"
#include "cli/escape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLEAR_LINE "\r\033[K" /* ECMA-48: go to the line's start, erase to its end */

static bool is_shown(const struct cli_options *options)
{
    return !options->is_quiet && isatty(STDERR_FILENO);
}

static void show(const struct fgprof_progress *progress, void *context)
{
    const struct cli_options *options = context;
    fprintf(stderr, CLEAR_LINE "%.1f s", (double)progress->elapsed_ns / 1e9);
    if (progress->duration_ns)
        fprintf(stderr, " of %.1f s", (double)progress->duration_ns / 1e9);
    if (options_are_of_objects(options)) {
        fflush(stderr);
        return;
    }
    fprintf(stderr,
            "  %" PRIu64 " threads  %" PRIu64 " samples  %" PRIu64 " stacks  %" PRIu64
            " ticks late",
            progress->threads, progress->samples, progress->stacks, progress->ticks_late);
    if (!progress->duration_ns && options->command == COMMAND_ATTACH)
        fputs("  Ctrl-C to finish", stderr);
    if (progress->deadlocks)
        fprintf(stderr, "  %" PRIu64 " %s", progress->deadlocks,
                progress->deadlocks == 1 ? "deadlock" : "deadlocks");
    fflush(stderr);
}

static void show_fetch(const char *path, double share, void *context)
{
    (void)context;
    fprintf(stderr, CLEAR_LINE "fetching debug information for ");
    print_escaped(basename(path));
    fprintf(stderr, ": %.0f %%", 100 * share);
    fflush(stderr);
}

bool progress_enable_fetch(const struct cli_options *options, fgprof_options *library)
{
    int err = fgprof_options_set_debuginfod(library, options->debuginfod_limit_ns,
                                            is_shown(options) ? show_fetch : NULL, NULL);
    if (err)
        fprintf(stderr, "fgprof-c: --debuginfod needs libdebuginfod: install it (Debian: "
                        "libdebuginfod1)\n");
    return !err;
}

void progress_enable(const struct cli_options *options, fgprof_options *library)
{
    if (is_shown(options))
        fgprof_options_set_progress(library, show, (void *)(uintptr_t)options);
}

void progress_clear(const struct cli_options *options)
{
    if (is_shown(options))
        fputs(CLEAR_LINE, stderr);
}
