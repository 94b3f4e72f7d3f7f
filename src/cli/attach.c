#include "commands.h"
#include "interrupt.h"
#include "new_recorder.h"
#include "output_file.h"
#include "progress.h"
#include "report.h"
#include "targets.h"

#include <stdio.h>
#include <string.h>

static bool record(const struct cli_options *options, fgprof_recorder *recorder,
                   struct output_file *file)
{
    fgprof_profile *profile;
    if (!targets_attach(options, recorder))
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

int command_attach(const struct cli_options *options)
{
    bool written = false;
    struct output_file file = {.fd = -1};
    fgprof_recorder *recorder = NULL;
    fgprof_options *library = options_for_library(options);
    int err = output_file_open(&file, options->output);
    if (err) {
        fprintf(stderr, "fgprof-c: %s can't be written: %s\n", options->output, strerror(-err));
    } else if (!library) {
        fprintf(stderr, "fgprof-c: out of memory\n");
    } else {
        progress_enable(options, library);
        if (progress_enable_fetch(options, library))
            recorder = new_recorder(options, library);
        if (recorder)
            written = record(options, recorder, &file);
    }
    output_file_abandon(&file);
    fgprof_recorder_free(recorder);
    fgprof_options_free(library);
    return written ? EXIT_WRITTEN : EXIT_NOT_WRITTEN;
}
