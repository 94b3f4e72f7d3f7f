/* What the commands have in common that record to one output: its file, opened first, so that
 * nothing is sampled for nothing, and the recorder. */
#ifndef FGPROF_CLI_RECORD_H
#define FGPROF_CLI_RECORD_H

#include "cli/options/options.h"

struct output_file;

/* Records and writes. `file` is open, and is put in its place or left as it is. Returns the
 * command's exit status. */
typedef int record_fn(const struct cli_options *options, fgprof_recorder *recorder,
                      struct output_file *file);

/* Has it done with a recorder and a file as the options say, and lets go of both. Where there is
 * not both, says why on stderr, and returns `failed`. */
int record(const struct cli_options *options, record_fn *record_to, int failed);

#endif
