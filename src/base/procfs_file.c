#include "base/procfs_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

ssize_t procfs_read(int dir_fd, const char *name, char *buffer, size_t buffer_bytes)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t length = 0;
    ssize_t got = 0;
    while (length < buffer_bytes - 1) {
        got = read(fd, buffer + length, buffer_bytes - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    int err = got < 0 ? -errno : 0;
    close(fd);
    if (err)
        return err;
    buffer[length] = '\0';
    return (ssize_t)length;
}

long procfs_number(const char *path, long none)
{
    char text[32];
    return procfs_read(AT_FDCWD, path, text, sizeof text) > 0 ? strtol(text, NULL, 10) : none;
}

FILE *procfs_open(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file && fd >= 0)
        close(fd);
    return file;
}

DIR *procfs_open_directory(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory && fd >= 0)
        close(fd);
    return directory;
}
