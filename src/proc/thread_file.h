/* A file of /proc/PID/task/TID that is read at every tick. It stays open while descriptors are
 * plentiful, because opening it costs more than reading it. */
#ifndef FGPROF_PROC_THREAD_FILE_H
#define FGPROF_PROC_THREAD_FILE_H

#include <stddef.h>
#include <sys/types.h>

struct thread_file {
    int fd_plus_1; /* 0: not open, so that a zeroed one is closed */
};

/* Reads `name` of thread `tid` below the open directory /proc/PID into `buffer`, terminates it with
 * NUL, and returns its length, or a negative errno. A descriptor of `keep_below` or more is closed
 * again. */
ssize_t thread_file_read(struct thread_file *file, int proc_fd, pid_t tid, const char *name,
                         int keep_below, char *buffer, size_t buffer_bytes);

void thread_file_close(struct thread_file *file);

#endif
