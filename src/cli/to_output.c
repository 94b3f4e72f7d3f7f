#include "cli/to_output.h"
#include "cli/output_file.h"
#include "cli/progress.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

fgprof_recorder *new_recorder(const struct cli_options *options, const fgprof_options *library)
{
    fgprof_recorder *recorder;
    int err = fgprof_recorder_new(library, &recorder);
    if (!err)
        return recorder;
    if (options->has_kernel_stacks && (err == -EACCES || err == -EPERM))
        fprintf(stderr, "fgprof-c: not permitted to read the kernel's stacks: run as root with "
                        "CAP_SYS_ADMIN, or without --kernel\n");
    else if (options->has_kernel_stacks && err == -ENOENT)
        fprintf(stderr, "fgprof-c: this kernel does not show its stacks (CONFIG_STACKTRACE): run "
                        "without --kernel\n");
    else if (options->capture == FGPROF_CAPTURE_KERNEL && (err == -EACCES || err == -EPERM))
        fprintf(stderr, "fgprof-c: the kernel does not permit sampling running threads: run with "
                        "CAP_PERFMON or kernel.perf_event_paranoid of at most 1, or without "
                        "--capture=kernel\n");
    else if (options->capture == FGPROF_CAPTURE_RECORD)
        fprintf(stderr,
                "fgprof-c: the kernel may not record switches (%s): run with CAP_BPF and "
                "CAP_PERFMON on Linux 5.15 or later, or without --capture=record\n",
                strerror(-err));
    else
        fprintf(stderr, "fgprof-c: can't start sampling: %s\n", strerror(-err));
    return NULL;
}

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
