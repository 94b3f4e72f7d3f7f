#include "cli/commands.h"
#include "cli/run_recorder.h"
#include "cli/summary.h"
#include "cli/select_pids.h"

#include <stdlib.h>

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
