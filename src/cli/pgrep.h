/* Choosing processes by their names. */
#ifndef FGPROF_CLI_PGREP_H
#define FGPROF_CLI_PGREP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Adds to *pids, which is the caller's to free, all processes whose name (/proc/PID/comm) the
 * extended regular expression `pattern` finds, as pgrep(1) does; not the calling one, nor kernel
 * threads and zombies. Says on stderr what is wrong; that there is
 * none, too. Returns whether there is any. */
bool pgrep(const char *pattern, pid_t **pids, size_t *pid_count);

#endif
