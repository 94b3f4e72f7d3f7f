/* The processes and threads that the command line names: by id, by name, in a control group. */
#ifndef FGPROF_CLI_SELECT_PIDS_H
#define FGPROF_CLI_SELECT_PIDS_H

#include "cli/options/options.h"

/* Whether the word can name a process: it is a number, or the name of one that runs. */
bool is_target(const char *word);

/* Lists the processes whose name matches. Of a longer name, only the 15 bytes that the kernel keeps
 * are compared. The caller frees *ret_pids. Errors: those of fgprof_find_processes. */
int find_by_name(const char *name, pid_t **ret_pids, size_t *ret_count);

/* Adds the processes that options->targets name to options->pids. A number is an id; a word is the
 * name of one process, as with --pgrep. If several match, it must be the whole name of one of them.
 * With --wait, a word also stands for processes that come later. On failure, prints the reason on
 * stderr, or a list of those that match, and returns false. */
bool find_targets(struct cli_options *options);

/* Adds the processes and threads to `recorder`. On failure, prints the reason on stderr and returns
 * false. */
bool select_pids(const struct cli_options *options, fgprof_recorder *recorder);

/* Those that were added. */
struct selected_pids {
    pid_t *pids;
    size_t count;
};

/* The same. The caller frees ret_selected->pids, also on failure. */
bool select_pids_listed(const struct cli_options *options, fgprof_recorder *recorder,
                        struct selected_pids *ret_selected);

#endif
