/* The processes and threads of -p, --pgrep and --tid. */
#ifndef FGPROF_CLI_SELECT_PIDS_H
#define FGPROF_CLI_SELECT_PIDS_H

#include "cli/options/options.h"

/* Adds them to `recorder`. On failure, prints the reason on stderr and returns false. */
bool select_pids(const struct cli_options *options, fgprof_recorder *recorder);

/* Those that were added. */
struct selected_pids {
    pid_t *pids;
    size_t count;
};

/* The same. The caller frees ret_selected->pids, also on failure. */
bool select_pids_listed(const struct cli_options *options, fgprof_recorder *recorder,
                        struct selected_pids *ret_selected);

#endif
