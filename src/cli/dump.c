#include "commands.h"
#include "new_recorder.h"
#include "output_file.h"
#include "targets.h"

#include <stdio.h>
#include <string.h>

static bool write_dump(const struct cli_options *options, fgprof_recorder *recorder,
                       struct output_file *file)
{
    fgprof_dump *dump;
    int err = fgprof_recorder_dump(recorder, &dump);
    if (err) {
        fprintf(stderr, "fgprof-c: the dump failed: %s\n", strerror(-err));
        return false;
    }
    bool has_threads = fgprof_dump_threads(dump) > 0;
    err = has_threads ? fgprof_dump_write(dump, options->dump_format, file->fd) : 0;
    if (!err && has_threads)
        err = output_file_commit(file);
    if (!has_threads)
        fprintf(stderr, "fgprof-c: no thread was left to be dumped: the process has exited\n");
    if (err)
        fprintf(stderr, "fgprof-c: %s can't be written: %s\n",
                strcmp(options->output, "-") == 0 ? "standard output" : options->output,
                strerror(-err));
    fgprof_dump_free(dump);
    return !err && has_threads;
}

int command_dump(const struct cli_options *options)
{
    bool written = false;
    struct output_file file = {.fd = -1};
    fgprof_recorder *recorder = NULL;
    fgprof_options *library = options_for_library(options);
    int err = output_file_open(&file, options->output);
    if (err)
        fprintf(stderr, "fgprof-c: %s can't be written: %s\n", options->output, strerror(-err));
    else if (!library)
        fprintf(stderr, "fgprof-c: out of memory\n");
    else
        recorder = new_recorder(options, library);
    if (recorder && targets_attach(options, recorder))
        written = write_dump(options, recorder, &file);
    output_file_abandon(&file);
    fgprof_recorder_free(recorder);
    fgprof_options_free(library);
    return written ? EXIT_WRITTEN : EXIT_NOT_WRITTEN;
}
