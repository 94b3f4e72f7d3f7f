#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/recorded.h"
#include "cli/report.h"
#include "cli/targets.h"
#include "cli/to_output.h"

#include <stdlib.h>

static int record_attached(const struct cli_options *options, fgprof_recorder *recorder,
                           struct output_file *file)
{
    struct targets targets;
    bool ok = targets_attach_listed(options, recorder, &targets) &&
              recorded_find_custom(options, &targets) &&
              recorded_check(options, recorder, targets.pids[0]);
    free(targets.pids);
    if (!ok)
        return EXIT_NOT_WRITTEN;
    interrupt_stops(recorder);
    fgprof_profile *profile = recorded_run(options, recorder);
    bool written = profile && report(options, profile, file);
    fgprof_profile_free(profile);
    return written ? EXIT_WRITTEN : EXIT_NOT_WRITTEN;
}

int command_attach(const struct cli_options *options)
{
    return record_to_output(options, record_attached, EXIT_NOT_WRITTEN);
}
