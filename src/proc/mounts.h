/* Which file systems are provided by a process, which may never answer: FUSE. */
#ifndef FGPROF_PROC_MOUNTS_H
#define FGPROF_PROC_MOUNTS_H

#include <stdbool.h>

/* Whether the file system on that device may be provided by a process, and so never answer. The
 * process whose /proc directory is `proc_fd` has a file of it open. Asks no file system. True if it
 * is mounted in neither mount namespace, and not shared memory. */
bool mounts_may_hang(int proc_fd, unsigned dev_major, unsigned dev_minor);

/* Whether files on that device are shared memory (memfd_create(2), shmget(2), a shared anonymous
 * mapping), whose mount is in no namespace. They have names, but can't be opened by them. */
bool mounts_is_shared_memory(unsigned dev_major, unsigned dev_minor);

/* Whether, as the process sees it, the directory, an absolute path, or one above it is on a file
 * system that another process provides. */
bool mounts_may_hang_at(int proc_fd, const char *directory);

#endif
