/* Small text files, such as those of /proc and /sys. */
#ifndef FGPROF_BASE_PROCFS_FILE_H
#define FGPROF_BASE_PROCFS_FILE_H

#include <dirent.h>
#include <stdio.h>
#include <sys/types.h>

/* Reads `name`, below `dir_fd` or AT_FDCWD, into `buffer`, terminates it with NUL and returns its
 * length, or a negative errno. Text that does not fit is cut off. */
ssize_t procfs_read(int dir_fd, const char *name, char *buffer, size_t buffer_bytes);

/* Reads the number that a setting of the kernel is; `none` if the kernel lacks it. */
long procfs_number(const char *path, long none);

/* Opens it to be read in parts. NULL, with errno: it can't be. */
FILE *procfs_open(int dir_fd, const char *name);

/* The same for a directory. */
DIR *procfs_open_directory(int dir_fd, const char *name);

#endif
