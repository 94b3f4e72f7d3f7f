/* Reading a recording and writing it in another format, for `convert` and `diff`. */
#ifndef FGPROF_CLI_CONVERT_H
#define FGPROF_CLI_CONVERT_H

#include "cli/options/options.h"

/* Reads the recording `path`, which is open as `fd` (or a negative errno says why not), and sets it
 * to be written as the options say. If it can't be read, prints the reason on stderr and returns
 * NULL. */
fgprof_profile *convert_read(const struct cli_options *options, const char *path, int fd);

/* Takes what writing it has returned: 0 or a negative errno, which is printed on stderr. Returns
 * the command's exit status. */
int convert_written(const struct cli_options *options, int err);

#endif
