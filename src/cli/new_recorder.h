#ifndef FGPROF_CLI_NEW_RECORDER_H
#define FGPROF_CLI_NEW_RECORDER_H

#include "cli/options/options.h"

/* Makes a recorder with these options. On failure, prints the reason on stderr and returns NULL. */
fgprof_recorder *new_recorder(const struct cli_options *options, const fgprof_options *library);

#endif
