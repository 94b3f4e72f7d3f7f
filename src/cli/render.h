/* What the commands that render kept recordings have in common. */
#ifndef FGPROF_CLI_RENDER_H
#define FGPROF_CLI_RENDER_H

#include "cli/options/options.h"

/* The recording in `path`, set to be written as the options say; NULL where it can't be read, which
 * is said on stderr. */
fgprof_profile *render_read(const struct cli_options *options, const char *path);

/* Writes to the options' output by `write`, which gets `context` and returns 0 or a negative errno.
 * Says on stderr what went wrong. Returns the command's exit status. */
typedef int render_fn(const struct cli_options *options, void *context, int fd);
int render_write(const struct cli_options *options, render_fn *write, void *context);

#endif
