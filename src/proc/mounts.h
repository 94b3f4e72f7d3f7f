/* Which file systems are provided by a process, which may never answer: FUSE. */
#ifndef FGPROF_PROC_MOUNTS_H
#define FGPROF_PROC_MOUNTS_H

#include <stdbool.h>

/* Whether the file system on that device, of which the process with the /proc directory `proc_fd`
 * has a file, may be provided by a process. Asks no file system. What is mounted neither here nor
 * there may be anything. */
bool mounts_may_hang(int proc_fd, unsigned dev_major, unsigned dev_minor);

/* Whether the process sees a file system that a process provides at the directory, an absolute
 * path, or at one above it. */
bool mounts_may_hang_at(int proc_fd, const char *directory);

#endif
