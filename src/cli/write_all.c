#include "cli/write_all.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

int write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            poll(&room, 1, -1);
        } else if (written < 0 && errno != EINTR) {
            return -errno;
        } else if (written > 0) {
            bytes += written;
            length -= (size_t)written;
        }
    }
    return 0;
}
