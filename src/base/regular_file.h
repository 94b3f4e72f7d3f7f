/* Opens files whose names come from others. */
#ifndef FGPROF_BASE_REGULAR_FILE_H
#define FGPROF_BASE_REGULAR_FILE_H

/* Opens `path`, below `dir_fd` or AT_FDCWD, for reading where it is a regular file: a FIFO would be
 * waited for without end, and opening a device may do something. Returns the descriptor or a
 * negative errno, -ENOEXEC for what is no regular file. */
int open_regular_file(int dir_fd, const char *path);

/* The same of what was opened as `path_fd` with O_PATH, which is closed; a negative errno instead
 * of a descriptor is handed back. */
int reopen_regular_file(int path_fd);

#endif
