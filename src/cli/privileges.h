/* What a command of root's gives up before it samples. */
#ifndef FGPROF_CLI_PRIVILEGES_H
#define FGPROF_CLI_PRIVILEGES_H

#include "cli/options/options.h"

/* To be called before there are other threads, as capabilities are each thread's own. Keeps what
 * sampling needs, of what this process has, and what opening the command's files and address takes.
 * Returns false, and prints the reason, if the rest can't be given up. */
bool privileges_limit(const struct cli_options *options);

/* The same once a command that stays has its directory and its address. */
bool privileges_limit_to_sampling(const struct cli_options *options);

#endif
