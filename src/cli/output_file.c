#include "cli/output_file.h"
#include "cli/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_directly(struct output_file *file, const char *path)
{
    /* O_NONBLOCK: opening a FIFO that has no reader fails instead of waiting forever. */
    file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file->fd < 0)
        return -errno;
    fcntl(file->fd, F_SETFL, fcntl(file->fd, F_GETFL) & ~O_NONBLOCK);
    return 0;
}

static mode_t mode_for_new_file(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int open_beside(struct output_file *file, mode_t mode)
{
    const char *name = base_name(file->path);
    if (asprintf(&file->temporary, "%.*s.%s.XXXXXX", (int)(name - file->path), file->path, name) <
        0) {
        file->temporary = NULL;
        return -ENOMEM;
    }
    file->fd = mkostemp(file->temporary, O_CLOEXEC);
    if (file->fd < 0) {
        int err = -errno;
        free(file->temporary);
        file->temporary = NULL;
        return err;
    }
    return fchmod(file->fd, mode) ? -errno : 0;
}

const char *output_file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard output" : path;
}

int output_file_open(struct output_file *file, const char *path)
{
    struct stat status;
    *file = (struct output_file){.fd = -1};
    if (strcmp(path, "-") == 0) {
        file->fd = STDOUT_FILENO;
        return fcntl(file->fd, F_GETFL) < 0 ? -errno : 0;
    }
    bool exists = stat(path, &status) == 0;
    if (!exists && errno != ENOENT)
        return -errno;
    if (exists && S_ISDIR(status.st_mode))
        return -EISDIR;
    if (exists && !S_ISREG(status.st_mode))
        return open_directly(file, path);
    if (exists && access(path, W_OK))
        return -errno;
    /* If the path is a symbolic link, its target is replaced, not the link. */
    file->path = exists ? realpath(path, NULL) : strdup(path);
    int err = file->path ? open_beside(file, exists ? status.st_mode & 0777 : mode_for_new_file())
                         : -errno;
    if (err)
        output_file_abandon(file);
    return err;
}

int output_file_commit(struct output_file *file)
{
    int err = 0;
    if (!file->path) {
        if (file->fd != STDOUT_FILENO && close(file->fd))
            err = -errno;
        file->fd = -1;
        return err;
    }
    if (fsync(file->fd))
        err = -errno;
    if (close(file->fd) && !err)
        err = -errno;
    file->fd = -1;
    if (!err && rename(file->temporary, file->path))
        err = -errno;
    if (!err) {
        free(file->temporary);
        file->temporary = NULL;
    }
    output_file_abandon(file);
    return err;
}

void output_file_abandon(struct output_file *file)
{
    if (file->fd >= 0 && file->fd != STDOUT_FILENO)
        close(file->fd);
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    *file = (struct output_file){.fd = -1};
}
