/* What a command of root's gives up before it samples. */
#ifndef FGPROF_CLI_PRIVILEGES_H
#define FGPROF_CLI_PRIVILEGES_H

#include "cli/options/options.h"

/* Call this before there are other threads, because capabilities are per thread. Of its
 * capabilities, this process keeps those that sampling needs, and those for opening the command's
 * files and address. Returns false, and prints the reason, if the others can't be dropped. */
bool privileges_limit(const struct cli_options *options);

/* The same once a command that stays has its directory and its address. */
bool privileges_limit_to_sampling(const struct cli_options *options);

#endif
