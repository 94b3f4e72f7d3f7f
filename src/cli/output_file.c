#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK_OF_FD "/proc/self/fd/%d"
#define LINK_BYTES 32
#define LINK_TRIES 100 /* with names that others have */

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

/* A name in the directory of file->path: ".NAME.SUFFIX", with NAME cut if it is long. NULL: no
 * memory. */
static char *name_beside(const struct output_file *file, const char *suffix)
{
    const char *name = basename(file->path);
    char *beside;
    int length =
        asprintf(&beside, "%.*s.%.200s.%s", (int)(name - file->path), file->path, name, suffix);
    return length < 0 ? NULL : beside;
}

/* /proc of another PID namespace has no link to our files. */
static bool can_be_linked(int fd)
{
    char link[LINK_BYTES];
    struct stat file, linked;
    snprintf(link, sizeof link, LINK_OF_FD, fd);
    return !fstat(fd, &file) && !stat(link, &linked) && file.st_dev == linked.st_dev &&
           file.st_ino == linked.st_ino;
}

/* An unnamed file (O_TMPFILE, open(2)) leaves nothing behind, however this process ends. Not every
 * file system supports it. Returns false if this one does not. */
static bool open_unnamed(struct output_file *file)
{
    const char *name = basename(file->path);
    char *directory =
        name == file->path ? strdup(".") : strndup(file->path, (size_t)(name - file->path));
    if (!directory)
        return false;
    file->fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    free(directory);
    if (file->fd >= 0 && !can_be_linked(file->fd)) {
        close(file->fd);
        file->fd = -1;
    }
    return file->fd >= 0;
}

static int open_named(struct output_file *file)
{
    file->temporary = name_beside(file, "XXXXXX");
    if (!file->temporary)
        return -ENOMEM;
    file->fd = mkostemp(file->temporary, O_CLOEXEC);
    if (file->fd < 0) {
        int err = -errno;
        free(file->temporary);
        file->temporary = NULL;
        return err;
    }
    return 0;
}

static int open_beside(struct output_file *file, mode_t mode)
{
    int err = open_unnamed(file) ? 0 : open_named(file);
    if (err)
        return err;
    return fchmod(file->fd, mode) ? -errno : 0;
}

const char *output_file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard output" : path;
}

/* Resolves the links in `path`. Returns NULL and sets errno if it no longer leads to the file that
 * was found there. realpath(3) alone would also follow links of other users that the kernel would
 * not (fs.protected_symlinks). */
static char *target_of(const char *path, const struct stat *found)
{
    struct stat status;
    char *target = realpath(path, NULL);
    if (target && lstat(target, &status) == 0 && status.st_dev == found->st_dev &&
        status.st_ino == found->st_ino)
        return target;
    if (target)
        errno = ESTALE;
    free(target);
    return NULL;
}

int output_file_create(struct output_file *file, const char *path)
{
    *file = (struct output_file){.fd = -1, .path = strdup(path)};
    int err = file->path ? open_beside(file, mode_for_new_file()) : -ENOMEM;
    if (err)
        output_file_abandon(file);
    return err;
}

int output_file_open(struct output_file *file, const char *path)
{
    struct stat status;
    *file = (struct output_file){.fd = -1};
    if (strcmp(path, "-") == 0) {
        file->fd = STDOUT_FILENO;
        int flags = fcntl(file->fd, F_GETFL);
        return flags < 0 ? -errno : (flags & O_ACCMODE) == O_RDONLY ? -EBADF : 0;
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
    if (!exists)
        return output_file_create(file, path);
    /* If the path is a symbolic link, its target is replaced, not the link. */
    file->path = target_of(path, &status);
    int err = file->path ? open_beside(file, status.st_mode & 0777) : -errno;
    if (err)
        output_file_abandon(file);
    return err;
}

int output_file_rename(struct output_file *file, const char *name)
{
    if (!file->path)
        return -EINVAL;
    int directory_bytes = (int)(basename(file->path) - file->path);
    char *path;
    if (asprintf(&path, "%.*s%s", directory_bytes, file->path, name) < 0)
        return -ENOMEM;
    free(file->path);
    file->path = path;
    return 0;
}

/* A link can't replace a file, but a rename can. So this first names the unnamed file, in the
 * directory of the file to be replaced. */
static int link_beside(struct output_file *file, const char *link)
{
    for (int tries = 0; tries < LINK_TRIES; tries++) {
        char suffix[sizeof(unsigned) * 2 + 1];
        unsigned number;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return -EIO;
        snprintf(suffix, sizeof suffix, "%08x", number);
        char *beside = name_beside(file, suffix);
        if (!beside)
            return -ENOMEM;
        if (!linkat(AT_FDCWD, link, AT_FDCWD, beside, AT_SYMLINK_FOLLOW)) {
            file->temporary = beside;
            return 0;
        }
        int err = -errno;
        free(beside);
        if (err != -EEXIST)
            return err;
    }
    return -EEXIST;
}

/* Gives the file its name, or a temporary one if that is taken. */
static int name_unnamed(struct output_file *file)
{
    char link[LINK_BYTES];
    snprintf(link, sizeof link, LINK_OF_FD, file->fd);
    if (!linkat(AT_FDCWD, link, AT_FDCWD, file->path, AT_SYMLINK_FOLLOW))
        return 0;
    return errno == EEXIST ? link_beside(file, link) : -errno;
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
    if (!err && !file->temporary)
        err = name_unnamed(file);
    if (close(file->fd) && !err)
        err = -errno;
    file->fd = -1;
    if (!err && file->temporary && rename(file->temporary, file->path))
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
