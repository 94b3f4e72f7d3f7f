/* Which file systems are provided by a process, which may never answer: FUSE. */
#ifndef FGPROF_PROC_MOUNTS_H
#define FGPROF_PROC_MOUNTS_H

#include <stdbool.h>

/* Whether the file system on that device may be provided by a process, and so never answer. A file
 * of it is open in the process whose /proc directory is `proc_fd`. Asks no file system. True if it
 * is mounted neither here nor there. */
bool mounts_may_hang(int proc_fd, unsigned dev_major, unsigned dev_minor);

/* Whether the process sees a file system that a process provides at the directory, an absolute
 * path, or at one above it. */
bool mounts_may_hang_at(int proc_fd, const char *directory);

#endif
