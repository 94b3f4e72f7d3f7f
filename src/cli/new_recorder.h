#ifndef FGPROF_CLI_NEW_RECORDER_H
#define FGPROF_CLI_NEW_RECORDER_H

#include "cli/options/options.h"

/* A recorder with these options. Says on stderr why there is none, and returns NULL. */
fgprof_recorder *new_recorder(const struct cli_options *options, const fgprof_options *library);

#endif
