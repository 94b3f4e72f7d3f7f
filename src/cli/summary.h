/* Writes a finished profile, and the summary on stderr. */
#ifndef FGPROF_CLI_SUMMARY_H
#define FGPROF_CLI_SUMMARY_H

#include "cli/options/options.h"

struct output_file;

/* Writes the recorder's `profile` to `file`, which is open, and commits or abandons the file.
 * Prints the summary unless -q was given, and always prints errors. Returns whether a profile of
 * the whole time was written. */
bool write_and_summarize(const struct cli_options *options, const fgprof_recorder *recorder,
                         fgprof_profile *profile, struct output_file *file);

#endif
