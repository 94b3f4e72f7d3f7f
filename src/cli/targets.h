/* Processes that are named by words of the command line, without an option. */
#ifndef FGPROF_CLI_TARGETS_H
#define FGPROF_CLI_TARGETS_H

#include "cli/options/options.h"

/* Whether the word can name a process: it is a number, or the name of one that runs. */
bool is_target(const char *word);

/* Adds the processes that options->targets name to options->pids. A number is an id; a word is the
 * name of one process, as --pgrep takes it. If several match, it must be the whole name of one of
 * them. With --wait, a word is for processes that come later, too. On failure, prints the reason on
 * stderr, or a list of those that match, and returns false. */
bool find_targets(struct cli_options *options);

#endif
