/* Opens files whose names come from outside this program. */
#ifndef FGPROF_BASE_REGULAR_FILE_H
#define FGPROF_BASE_REGULAR_FILE_H

#include <stdbool.h>

/* Opens `path`, below `dir_fd` or AT_FDCWD, for reading if it is a regular file. Opening a FIFO
 * could wait forever, and opening a device, or a file of /proc or the like, may have effects.
 * Returns the descriptor or a negative errno: -ENOEXEC if it is not such a file. If another process
 * has a lease on the file (F_SETLEASE of fcntl(2)), `flags` decides: 0 waits until that is broken,
 * which may take 45 seconds; with O_NONBLOCK, for files of a target, the result is -EAGAIN. */
int open_regular_file(int dir_fd, const char *path, int flags);

/* Opens `path` with O_NONBLOCK as in a process with the root directory `root_fd`: neither a
 * symbolic link nor ".." leads out of it, or through /proc. `follows_last`: the file may itself be
 * a link; otherwise a link there gives -ENOEXEC. */
int open_regular_file_in_root(int root_fd, const char *path, bool follows_last);

#endif
