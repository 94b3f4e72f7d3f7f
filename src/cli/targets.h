/* The processes and threads of -p, --pgrep and --tid. */
#ifndef FGPROF_CLI_TARGETS_H
#define FGPROF_CLI_TARGETS_H

#include "cli/options/options.h"

/* Adds them to `recorder`. On failure, prints the reason on stderr and returns false. */
bool targets_attach(const struct cli_options *options, fgprof_recorder *recorder);

/* Those that were added. */
struct targets {
    pid_t *pids;
    size_t count;
};

/* The same. The caller frees ret_targets->pids, also on failure. */
bool targets_attach_listed(const struct cli_options *options, fgprof_recorder *recorder,
                           struct targets *ret_targets);

#endif
