/* Finds processes by name. */
#ifndef FGPROF_PROC_FIND_H
#define FGPROF_PROC_FIND_H

#include <regex.h>
#include <stddef.h>
#include <sys/types.h>

/* Lists the processes whose name matches the expression, except the calling process, kernel threads
 * and zombies. The caller frees *ret_pids. Returns 0 or a negative errno. */
int processes_find(const regex_t *expression, pid_t **ret_pids, size_t *ret_count);

#endif
