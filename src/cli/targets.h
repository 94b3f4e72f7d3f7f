/* Processes by their names, and those that are named on the command line without an option. */
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

/* Lists the processes whose name matches, as pgrep(1) does. A name that is longer than the kernel
 * keeps matches what it keeps. The caller frees *ret_pids. Returns whether there is any; if not,
 * prints the reason on stderr. */
bool find_named_processes(const char *name, pid_t **ret_pids, size_t *ret_count);

#endif
