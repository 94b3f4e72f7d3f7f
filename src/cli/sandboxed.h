/* Runs a command that reads recordings in a process without privileges.
 *
 * Anybody may have made a recording, and root may run fgprof-c. So this process only opens the
 * recordings, and writes what a child makes of them: the child reads them, and can do nothing else
 * (see base/sandbox.h). If it crashes, or takes too much time or memory, nothing is written. */
#ifndef FGPROF_CLI_SANDBOXED_H
#define FGPROF_CLI_SANDBOXED_H

#include "cli/options/options.h"

#define SANDBOXED_INPUTS_MAX 2

/* Runs in the child. `inputs` are the options' recordings, open for reading, or negative errnos for
 * those that could not be opened. Its standard output goes to the options' output, and its standard
 * error is shown. Returns the command's exit status. */
typedef int sandboxed_work_fn(const struct cli_options *options, const int *inputs);

/* Returns the command's exit status; what it is not 0 for is said on standard error. */
int sandboxed_run(const struct cli_options *options, size_t input_count, sandboxed_work_fn *work);

#endif
