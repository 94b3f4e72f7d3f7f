/* The common part of all commands that record to one output: the recorder and the output file. The
 * file is opened first, so that nothing is sampled in vain. */
#ifndef FGPROF_CLI_TO_OUTPUT_H
#define FGPROF_CLI_TO_OUTPUT_H

#include "cli/options/options.h"

/* Makes a recorder with these options. On failure, prints the reason on stderr and returns NULL. */
fgprof_recorder *new_recorder(const struct cli_options *options, const fgprof_options *library);

struct output_file;

/* Records, and writes to `file`, which is open. It may commit the file. Returns the command's exit
 * status. */
typedef int record_fn(const struct cli_options *options, fgprof_recorder *recorder,
                      struct output_file *file);

/* Makes a recorder and opens a file as the options say, calls `record_to`, and frees both. If
 * either can't be had, prints the reason on stderr and returns `failed`. */
int record_to_output(const struct cli_options *options, record_fn *record_to, int failed);

#endif
