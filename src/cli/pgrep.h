/* Choosing processes by their names. */
#ifndef FGPROF_CLI_PGREP_H
#define FGPROF_CLI_PGREP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Lists in *ret_pids, which is the caller's to free, all processes whose name (/proc/PID/comm) the
 * extended regular expression `pattern` finds, as pgrep(1) does: see fgprof_find_processes. Says on
 * stderr what is wrong; that there is none, too. Returns whether there is any. */
bool pgrep(const char *pattern, pid_t **ret_pids, size_t *ret_count);

#endif
