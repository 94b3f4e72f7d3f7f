#include "cli/to_output.h"
#include "cli/new_recorder.h"
#include "cli/output_file.h"
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>

int record_to_output(const struct cli_options *options, record_fn *record_to, int failed)
{
    int status = failed;
    struct output_file file = {.fd = -1};
    fgprof_recorder *recorder = NULL;
    fgprof_options *library = options_for_library(options);
    int err = output_file_open(&file, options->output);
    if (err) {
        fprintf(stderr, "fgprof-c: %s can't be written: %s\n", options->output, strerror(-err));
    } else if (!library) {
        fprintf(stderr, "fgprof-c: out of memory\n");
    } else {
        if (options->command != COMMAND_DUMP) /* a dump is one round */
            progress_enable(options, library);
        if (progress_enable_fetch(options, library))
            recorder = new_recorder(options, library);
        if (recorder)
            status = record_to(options, recorder, &file);
    }
    output_file_abandon(&file);
    fgprof_recorder_free(recorder);
    fgprof_options_free(library);
    return status;
}
