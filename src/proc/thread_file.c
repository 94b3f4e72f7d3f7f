#include "proc/thread_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

ssize_t thread_file_read(struct thread_file *file, int proc_fd, pid_t tid, const char *name,
                         int keep_below, char *buffer, size_t buffer_bytes)
{
    int fd = file->fd_plus_1 - 1;
    if (fd < 0) {
        char path[64];
        snprintf(path, sizeof path, "task/%d/%s", tid, name);
        fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return -errno;
        file->fd_plus_1 = fd + 1;
    }
    ssize_t length = pread(fd, buffer, buffer_bytes - 1, 0);
    int err = length < 0 ? -errno : 0;
    if (fd >= keep_below)
        thread_file_close(file);
    if (err)
        return err;
    buffer[length] = '\0';
    return length;
}

void thread_file_close(struct thread_file *file)
{
    if (file->fd_plus_1)
        close(file->fd_plus_1 - 1);
    file->fd_plus_1 = 0;
}
