/* Reading a recording and writing it in another format, for `convert` and `diff`. */
#ifndef FGPROF_CLI_CONVERT_H
#define FGPROF_CLI_CONVERT_H

#include "cli/options/options.h"

/* Reads the recording in `path`, and sets it to be written as the options say. If it can't be read,
 * prints the reason on stderr and returns NULL. */
fgprof_profile *convert_read(const struct cli_options *options, const char *path);

/* Writes to the options' output by calling `write`, which gets `context` and returns 0 or a
 * negative errno. Prints errors on stderr. Returns the command's exit status. */
typedef int convert_write_fn(const struct cli_options *options, void *context, int fd);
int convert_write(const struct cli_options *options, convert_write_fn *write, void *context);

#endif
