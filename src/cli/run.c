/* `attach` and `run`. */
#include "cli/commands.h"
#include "cli/options/options.h"
#include "cli/run_recorder.h"
#include "cli/select_pids.h"
#include "cli/summary.h"
#include "cli/say.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int record_attached(const struct cli_options *options, fgprof_recorder *recorder,
                           struct output_file *file)
{
    struct selected_pids targets;
    bool ok = select_pids_listed(options, recorder, &targets) && check_custom(options, &targets) &&
              check_objects(options, recorder, targets.pids[0]) &&
              name_page(options, targets.pids[0], file);
    free(targets.pids);
    if (!ok)
        return EXIT_NOT_WRITTEN;
    interrupt_stops(recorder);
    fgprof_profile *profile = run_recorder(options, recorder);
    bool written = profile && write_and_summarize(options, recorder, profile, file);
    fgprof_profile_free(profile);
    return written ? EXIT_WRITTEN : EXIT_NOT_WRITTEN;
}

int command_attach(const struct cli_options *options)
{
    return record_to_output(options, record_attached, EXIT_NOT_WRITTEN);
}

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
    int wait_status;
    pid_t child = fgprof_recorder_child(recorder);
    fgprof_profile *profile =
        name_page(options, child, file) ? run_recorder(options, recorder) : NULL;
    bool written = profile && write_and_summarize(options, recorder, profile, file);
    fgprof_profile_free(profile);
    if (!options->is_quiet && command_goes_on(child))
        say("%s is still running: waiting for process %d to exit", options->command_argv[0],
            (int)child);
    int err = fgprof_recorder_wait(recorder, &wait_status);
    return written && !err ? status_of(wait_status) : EXIT_SAMPLER_FAILED;
}

static void complain_of_child(pid_t child, int err)
{
    char why[256];
    fgprof_explain(child, err, why, sizeof why);
    say("%s", why);
}

static int start_and_record(const struct cli_options *options, fgprof_recorder *recorder,
                            struct output_file *file)
{
    bool to_stdout = strcmp(options->output, "-") == 0;
    interrupt_forwards(recorder);
    /* Whether page faults may be seen does not depend on the command: it need not be started. */
    if (options->kind == FGPROF_KIND_GROWTH && !check_objects(options, recorder, 0))
        return EXIT_SAMPLER_FAILED;
    int err =
        fgprof_recorder_spawn(recorder, options->command_argv, to_stdout ? STDERR_FILENO : -1);
    pid_t child = fgprof_recorder_child(recorder);
    interrupt_forward_early(recorder);
    if (!err && check_objects(options, recorder, child))
        return record_started(options, recorder, file);
    if (child) {
        /* The command runs but may not be sampled, for example because it has more privileges. Let
         * it run. */
        int wait_status;
        if (err)
            complain_of_child(child, err);
        fgprof_recorder_wait(recorder, &wait_status);
        return EXIT_SAMPLER_FAILED;
    }
    if (err == -ELIBACC || err == -ELIBBAD) {
        complain_of_objects(options, 0, err);
        return EXIT_SAMPLER_FAILED;
    }
    say("%s: %s", options->command_argv[0], strerror(-err));
    return err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

int command_run(const struct cli_options *options)
{
    return record_to_output(options, start_and_record, EXIT_SAMPLER_FAILED);
}
