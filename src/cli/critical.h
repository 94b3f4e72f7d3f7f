/* The critical path that --critical asks for. */
#ifndef FGPROF_CLI_CRITICAL_H
#define FGPROF_CLI_CRITICAL_H

#include "cli/options/options.h"

/* Turns the profile into that of the critical path, unless it is to be written as a recording.
 * Returns 0 or a negative errno. */
int critical_make(const struct cli_options *options, fgprof_profile *profile);

/* Prints why that failed. `path`: the recording that was read; NULL: none was. */
void critical_complain(const struct cli_options *options, const char *path, int err);

#endif
