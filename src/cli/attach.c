#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "cli/targets.h"
#include "cli/to_output.h"

#include <stdio.h>
#include <string.h>

static int record_attached(const struct cli_options *options, fgprof_recorder *recorder,
                           struct output_file *file)
{
    fgprof_profile *profile;
    if (!targets_attach(options, recorder))
        return EXIT_NOT_WRITTEN;
    interrupt_stops(recorder);
    int err = fgprof_recorder_run(recorder, &profile);
    if (err) {
        fprintf(stderr, "fgprof-c: sampling failed: %s\n", strerror(-err));
        return EXIT_NOT_WRITTEN;
    }
    bool written = report(options, profile, file);
    fgprof_profile_free(profile);
    return written ? EXIT_WRITTEN : EXIT_NOT_WRITTEN;
}

int command_attach(const struct cli_options *options)
{
    return record_to_output(options, record_attached, EXIT_NOT_WRITTEN);
}
