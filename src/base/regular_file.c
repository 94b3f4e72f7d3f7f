#include "base/regular_file.h"
#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as many as the kernel follows (path_resolution(7)) */
#define DEPTH_MAX 64

/* Whether the file has an effect or waits when it is read, opened or closed, though it counts as a
 * regular file, as those of /proc do. */
static bool is_of_kernel(int path_fd)
{
    static const uint32_t magics[] = {
        PROC_SUPER_MAGIC,   SYSFS_MAGIC,         TRACEFS_MAGIC, DEBUGFS_MAGIC,  SECURITYFS_MAGIC,
        CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,  PSTOREFS_MAGIC, EFIVARFS_MAGIC,
        SELINUX_MAGIC,      SMACK_MAGIC,         BINFMTFS_MAGIC};
    struct statfs where;
    bool is_one = false;
    if (fstatfs(path_fd, &where))
        return false; /* a file system that a process provides may fail, these do not */
    for (size_t i = 0; i < COUNT_OF(magics) && !is_one; i++)
        is_one = (uint32_t)where.f_type == magics[i];
    return is_one;
}

/* Opens the file behind `path_fd` for reading, if it is a regular file. `path_fd` was opened with
 * O_PATH, which does not touch the file, and is closed. If it is a negative errno, returns that. */
static int reopen(int path_fd, int flags)
{
    struct stat status;
    if (path_fd < 0)
        return path_fd;
    int fd = -ENOEXEC;
    if (fstat(path_fd, &status) == 0 && S_ISREG(status.st_mode) && !is_of_kernel(path_fd)) {
        char self[64];
        snprintf(self, sizeof self, "/proc/self/fd/%d", path_fd);
        fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
        if (fd < 0)
            fd = -errno;
        else
            fcntl(fd, F_SETFL, 0); /* the flags are only for opening it */
    }
    close(path_fd);
    return fd;
}

int open_regular_file(int dir_fd, const char *path, int flags)
{
    int path_fd = openat(dir_fd, path, O_PATH | O_CLOEXEC);
    return reopen(path_fd < 0 ? -errno : path_fd, flags);
}

/* The state of a path walk below another root. The directories from the root to the current one are
 * open, so ".." needs no lookup by name. */
struct walk {
    int folders[DEPTH_MAX]; /* the first is the root, which is the caller's */
    unsigned depth;
    unsigned links;
    char rest[PATH_MAX]; /* the components not yet followed */
};

static void leave_to(struct walk *walk, unsigned depth)
{
    while (walk->depth > depth)
        close(walk->folders[walk->depth--]);
}

/* Puts what the link says before the rest of the path. Returns 0 or a negative errno. */
static int follow_link(struct walk *walk, int link_fd, const char *rest)
{
    struct statfs where;
    char whole[PATH_MAX];
    ssize_t bytes = readlinkat(link_fd, "", whole, sizeof whole);
    if (bytes < 0)
        return -errno;
    if (walk->links++ == LINKS_MAX || fstatfs(link_fd, &where) || where.f_type == PROC_SUPER_MAGIC)
        return -ELOOP;
    size_t rest_bytes = strlen(rest) + 1;
    if ((size_t)bytes + 1 + rest_bytes > sizeof whole)
        return -ENAMETOOLONG;
    whole[bytes] = '/';
    memcpy(whole + bytes + 1, rest, rest_bytes);
    memcpy(walk->rest, whole, (size_t)bytes + 1 + rest_bytes);
    if (whole[0] == '/')
        leave_to(walk, 0);
    return 0;
}

/* Takes one component of the path. Returns the file's descriptor if it is the last one, -EAGAIN if
 * it is not, or another negative errno. */
static int step(struct walk *walk, bool follows_last)
{
    char name[NAME_MAX + 1], rest[PATH_MAX];
    struct stat status;
    size_t slashes = strspn(walk->rest, "/"), bytes = strcspn(walk->rest + slashes, "/");
    snprintf(rest, sizeof rest, "%s", walk->rest + slashes + bytes);
    if (!bytes || bytes > NAME_MAX)
        return bytes ? -ENAMETOOLONG : -EISDIR;
    memcpy(name, walk->rest + slashes, bytes);
    name[bytes] = '\0';
    memmove(walk->rest, rest, strlen(rest) + 1);
    if (strcmp(name, "..") == 0) {
        leave_to(walk, walk->depth ? walk->depth - 1 : 0);
        return -EAGAIN;
    }
    bool is_last = rest[strspn(rest, "/")] == '\0';
    if (!is_last && strcmp(name, ".") == 0)
        return -EAGAIN; /* it adds no folder for ".." to leave */
    int fd = openat(walk->folders[walk->depth], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    bool is_link = fstat(fd, &status) == 0 && S_ISLNK(status.st_mode);
    if (is_last && !(is_link && follows_last))
        return fd;
    if (!is_link && walk->depth + 1 < DEPTH_MAX) {
        walk->folders[++walk->depth] = fd;
        return -EAGAIN;
    }
    int err = is_link ? follow_link(walk, fd, rest) : -ENAMETOOLONG;
    close(fd);
    return err ? err : -EAGAIN;
}

/* Does what openat2 does, one component at a time. A component that is replaced by a link meanwhile
 * is not followed. */
static int walk_in_root(int root_fd, const char *path, bool follows_last)
{
    struct walk walk = {.folders = {root_fd}};
    if (strlen(path) >= sizeof walk.rest)
        return -ENAMETOOLONG;
    memcpy(walk.rest, path, strlen(path) + 1);
    int fd;
    do
        fd = step(&walk, follows_last);
    while (fd == -EAGAIN);
    leave_to(&walk, 0);
    return fd;
}

int open_regular_file_in_root(int root_fd, const char *path, bool follows_last)
{
    struct open_how how = {
        .flags = (uint64_t)(O_PATH | O_CLOEXEC | (follows_last ? 0 : O_NOFOLLOW)),
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    if (fd < 0)
        fd = -errno;
    /* Linux has it from 5.6 on; filters of system calls that do not know it refuse it. */
    if (fd == -ENOSYS || fd == -EPERM)
        fd = walk_in_root(root_fd, path, follows_last);
    return reopen(fd, O_NONBLOCK);
}
