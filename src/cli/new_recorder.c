#include "cli/new_recorder.h"

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
    else
        fprintf(stderr, "fgprof-c: can't start sampling: %s\n", strerror(-err));
    return NULL;
}
