/* The processes and threads of -p, --pgrep and --tid. */
#ifndef FGPROF_CLI_TARGETS_H
#define FGPROF_CLI_TARGETS_H

#include "cli/options/options.h"

/* Adds them to `recorder`. On failure, prints the reason on stderr and returns false. */
bool targets_attach(const struct cli_options *options, fgprof_recorder *recorder);

#endif
