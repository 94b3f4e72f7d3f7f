/* Which child a thread waits for. */
#ifndef FGPROF_WAIT_CHILD_H
#define FGPROF_WAIT_CHILD_H

#include "observe/call.h"

#include <sys/types.h>

/* The process that thread `tid` of the process with the open directory /proc/PID waits for, with
 * its id in our PID namespace. `target` is a CALL_PROCESS. If any child will do, it is the only
 * one. Returns 0 if it is not known or not one. */
pid_t child_waited_for(int proc_fd, pid_t tid, const struct call_target *target);

#endif
