/* Choosing processes by their names. */
#ifndef FGPROF_CLI_PGREP_H
#define FGPROF_CLI_PGREP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Lists all processes whose name (/proc/PID/comm) matches the extended regular expression
 * `pattern`, as pgrep(1) does: see fgprof_find_processes. The caller frees *ret_pids. Returns
 * whether any process was found; if not, prints the reason on stderr. */
bool pgrep(const char *pattern, pid_t **ret_pids, size_t *ret_count);

#endif
