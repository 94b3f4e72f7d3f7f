#include "wait/descriptor.h"
#include "wait/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static void set_access(struct descriptor_info *info, unsigned flags)
{
    unsigned mode = flags & O_ACCMODE;
    info->is_readable = mode == O_RDONLY || mode == O_RDWR;
    info->is_writable = mode == O_WRONLY || mode == O_RDWR;
}

void descriptor_info_add_line(struct descriptor_info *info, const char *line)
{
    unsigned number;
    uint64_t inode;
    int fd;
    struct file_lock lock;
    if (sscanf(line, "flags: %o", &number) == 1) {
        set_access(info, number);
    } else if (sscanf(line, "ino: %" SCNu64, &inode) == 1) {
        info->inode = inode;
    } else if (sscanf(line, "Pid: %d", &fd) == 1) {
        info->process_id = fd > 0 ? fd : 0;
    } else if (sscanf(line, "tfd: %d events: %x", &fd, &number) == 2) {
        if (!info->polled_count++)
            info->polled = (struct polled){
                .fd = fd,
                .use = number & EPOLLIN    ? FILE_USE_READ
                       : number & EPOLLOUT ? FILE_USE_WRITE
                                           : FILE_USE_OTHER,
            };
    } else if (strncmp(line, "lock:", 5) == 0 && file_lock_parse(line + 5, &lock)) {
        info->locks |= 1u << lock.use;
    }
}

int descriptor_info_read(int proc_fd, int fd, struct descriptor_info *ret_info)
{
    char path[32], *line = NULL;
    size_t line_bytes = 0;
    struct descriptor_info info = {.polled.fd = -1};
    snprintf(path, sizeof path, "fdinfo/%d", fd);
    int info_fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    FILE *file = info_fd < 0 ? NULL : fdopen(info_fd, "r");
    if (!file) {
        int err = -errno;
        if (info_fd >= 0)
            close(info_fd);
        return err;
    }
    while (getline(&line, &line_bytes, file) > 0)
        descriptor_info_add_line(&info, line);
    free(line);
    fclose(file);
    *ret_info = info;
    return 0;
}
