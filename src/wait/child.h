/* Which child a thread waits for. */
#ifndef FGPROF_WAIT_CHILD_H
#define FGPROF_WAIT_CHILD_H

#include "observe/call.h"

#include <sys/types.h>

/* The process that thread `tid` of the process with the open directory /proc/PID waits for, as an
 * id in our PID namespace. `target` is a CALL_PROCESS. If the call accepts any child, it is the
 * only child. Returns 0 if it is not known, or there are several. */
pid_t child_waited_for(int proc_fd, pid_t tid, const struct call_target *target);

#endif
