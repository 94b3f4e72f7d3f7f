#include "commands.h"
#include "help.h"
#include "interrupt.h"
#include "new_recorder.h"
#include "options.h"
#include "output_file.h"
#include "pgrep.h"
#include "progress.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool attach(fgprof_recorder *recorder, pid_t pid)
{
    int err = fgprof_recorder_attach(recorder, pid);
    if (err) {
        char why[256];
        fgprof_explain(pid, err, why, sizeof why);
        fprintf(stderr, "fgprof-c: %s\n", why);
    }
    return !err;
}

/* Of those that were chosen by name, some may be another user's: the others are sampled. */
static bool attach_named(const struct cli_options *options, fgprof_recorder *recorder)
{
    pid_t *pids = NULL;
    size_t count = 0, attached = options->pid_count;
    bool found = pgrep(options->pgrep, &pids, &count);
    for (size_t i = 0; i < count; i++) {
        bool was_given = false;
        for (size_t j = 0; j < options->pid_count; j++)
            was_given = was_given || options->pids[j] == pids[i];
        attached += !was_given && attach(recorder, pids[i]);
    }
    free(pids);
    return found && attached;
}

static bool attach_all(const struct cli_options *options, fgprof_recorder *recorder)
{
    for (size_t i = 0; i < options->pid_count; i++) {
        if (!attach(recorder, options->pids[i]))
            return false;
    }
    return !options->pgrep || attach_named(options, recorder);
}

static bool check_threads(const struct cli_options *options, const fgprof_recorder *recorder)
{
    for (size_t i = 0; i < options->tid_count; i++) {
        if (!fgprof_recorder_has_thread(recorder, options->tids[i])) {
            fprintf(stderr,
                    "fgprof-c: no thread %d in what is to be sampled: give ids as ps -L and this "
                    "machine's or container's /proc/PID/task have them\n",
                    (int)options->tids[i]);
            return false;
        }
    }
    return true;
}

static bool record(const struct cli_options *options, fgprof_recorder *recorder,
                   struct output_file *file)
{
    fgprof_profile *profile;
    if (!attach_all(options, recorder) || !check_threads(options, recorder))
        return false;
    interrupt_stops(recorder);
    int err = fgprof_recorder_run(recorder, &profile);
    if (err) {
        fprintf(stderr, "fgprof-c: sampling failed: %s\n", strerror(-err));
        return false;
    }
    bool written = report(options, profile, file);
    fgprof_profile_free(profile);
    return written;
}

int command_attach(int argc, char **argv)
{
    struct cli_options options;
    enum parse_result parsed = options_parse(argc, argv, COMMAND_ATTACH, &options);
    if (parsed == PARSE_HELP) {
        help_attach();
        return EXIT_WRITTEN;
    }
    if (parsed == PARSE_WRONG)
        return EXIT_USAGE;

    bool written = false;
    struct output_file file = {.fd = -1};
    fgprof_recorder *recorder = NULL;
    fgprof_options *library = options_for_library(&options);
    int err = output_file_open(&file, options.output);
    if (err) {
        fprintf(stderr, "fgprof-c: %s can't be written: %s\n", options.output, strerror(-err));
    } else if (!library) {
        fprintf(stderr, "fgprof-c: out of memory\n");
    } else {
        progress_enable(&options, library);
        if (progress_enable_fetch(&options, library))
            recorder = new_recorder(&options, library);
        if (recorder)
            written = record(&options, recorder, &file);
    }
    output_file_abandon(&file);
    fgprof_recorder_free(recorder);
    fgprof_options_free(library);
    options_free(&options);
    return written ? EXIT_WRITTEN : EXIT_NOT_WRITTEN;
}
