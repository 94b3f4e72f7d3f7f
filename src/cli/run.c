#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/options/options.h"
#include "cli/report.h"
#include "cli/to_output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of(int wait_status)
{
    return WIFSIGNALED(wait_status) ? EXIT_SIGNAL_BASE + WTERMSIG(wait_status)
                                    : WEXITSTATUS(wait_status);
}

/* Samples the command, which has been started, and writes the profile. Returns the command's exit
 * status, or 125 on failure. */
static int record_started(const struct cli_options *options, fgprof_recorder *recorder,
                          struct output_file *file)
{
    fgprof_profile *profile = NULL;
    bool written = false;
    int wait_status;
    int err = fgprof_recorder_run(recorder, &profile);
    if (err)
        fprintf(stderr, "fgprof-c: sampling failed: %s\n", strerror(-err));
    else
        written = report(options, profile, file);
    fgprof_profile_free(profile);
    err = fgprof_recorder_wait(recorder, &wait_status);
    return written && !err ? status_of(wait_status) : EXIT_SAMPLER_FAILED;
}

static int start_and_record(const struct cli_options *options, fgprof_recorder *recorder,
                            struct output_file *file)
{
    bool to_stdout = strcmp(options->output, "-") == 0;
    interrupt_forwards(recorder);
    int err =
        fgprof_recorder_spawn(recorder, options->command_argv, to_stdout ? STDERR_FILENO : -1);
    if (!err)
        return record_started(options, recorder, file);
    if (fgprof_recorder_child(recorder)) {
        /* The command runs but may not be sampled, for example because it has more privileges. Do
         * not end it. */
        char why[256];
        int wait_status;
        fgprof_explain(fgprof_recorder_child(recorder), err, why, sizeof why);
        fprintf(stderr, "fgprof-c: %s\n", why);
        fgprof_recorder_wait(recorder, &wait_status);
        return EXIT_SAMPLER_FAILED;
    }
    fprintf(stderr, "fgprof-c: %s: %s\n", options->command_argv[0], strerror(-err));
    return err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

int command_run(const struct cli_options *options)
{
    return record_to_output(options, start_and_record, EXIT_SAMPLER_FAILED);
}
