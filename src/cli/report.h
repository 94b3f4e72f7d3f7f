/* What is said on stderr when a profile is done. */
#ifndef FGPROF_CLI_REPORT_H
#define FGPROF_CLI_REPORT_H

#include "cli/options/options.h"

struct output_file;

/* Writes `profile` where the options say, and the summary, unless -q. `file` is open, and is put in
 * its place or abandoned. Says what went wrong. Returns whether a profile of the whole time was
 * written. */
bool report(const struct cli_options *options, fgprof_profile *profile, struct output_file *file);

#endif
