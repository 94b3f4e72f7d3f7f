/* Processes by their names. */
#ifndef FGPROF_PROC_FIND_H
#define FGPROF_PROC_FIND_H

#include <regex.h>
#include <stddef.h>
#include <sys/types.h>

/* Lists the processes whose name the expression is found in; not the calling one, kernel threads
 * and zombies. *ret_pids is the caller's to free. Returns 0 or a negative errno. */
int processes_find(const regex_t *expression, pid_t **ret_pids, size_t *ret_count);

#endif
