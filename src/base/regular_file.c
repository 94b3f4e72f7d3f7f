#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_PATH first: it has no effect on the file. */
int open_regular_file(int dir_fd, const char *path)
{
    int path_fd = openat(dir_fd, path, O_PATH | O_CLOEXEC);
    return reopen_regular_file(path_fd < 0 ? -errno : path_fd);
}

int reopen_regular_file(int path_fd)
{
    struct stat status;
    if (path_fd < 0)
        return path_fd;
    int fd = -ENOEXEC;
    if (fstat(path_fd, &status) == 0 && S_ISREG(status.st_mode)) {
        char self[64];
        snprintf(self, sizeof self, "/proc/self/fd/%d", path_fd);
        fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
            fd = -errno;
    }
    close(path_fd);
    return fd;
}
