#include "mapping/mapped_file.h"
#include "base/regular_file.h"
#include "proc/maps.h"
#include "proc/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define COMPARED_BYTES_MAX (64u << 10)
/* Kept free below the limit of open files: so many, or a quarter of a low limit. */
#define FDS_FOR_OTHERS 64
#define PART_FOR_OTHERS 4

static int open_regular(int dir_fd, const char *path)
{
    int fd = open_regular_file(dir_fd, path);
    return fd == -ENOEXEC ? -ENXIO : fd;
}

/* Whether the mapping begins with the file's bytes. */
static bool has_same_code(int fd, pid_t tid, const struct maps_entry *entry)
{
    unsigned char in_file[4096], in_memory[sizeof in_file];
    uint64_t bytes = entry->end - entry->start;
    if (bytes > COMPARED_BYTES_MAX)
        bytes = COMPARED_BYTES_MAX;
    for (uint64_t at = 0; at < bytes; at += sizeof in_file) {
        ssize_t got = pread(fd, in_file, sizeof in_file, (off_t)(entry->offset + at));
        if (got == 0 && at)
            break; /* the file ends, but the mapping goes on to the end of its page */
        if (got <= 0 ||
            memory_read(tid, entry->start + at, in_memory, (size_t)got) != (size_t)got ||
            memcmp(in_file, in_memory, (size_t)got) != 0)
            return false;
    }
    return true;
}

/* Compares inode and device. On btrfs and overlayfs, maps and stat give different devices; if the
 * devices differ, the mapped bytes must be those in the file. */
static bool is_mapped_file(int fd, pid_t tid, const struct maps_entry *entry)
{
    struct stat status;
    if (fstat(fd, &status) || status.st_ino != entry->inode)
        return false;
    return (major(status.st_dev) == entry->dev_major && minor(status.st_dev) == entry->dev_minor) ||
           has_same_code(fd, tid, entry);
}

/* Opens `path` below `dir_fd` if it is the mapped file. */
static int open_if_mapped(int dir_fd, const char *path, pid_t tid, const struct maps_entry *entry)
{
    int fd = open_regular(dir_fd, path);
    if (fd >= 0 && !is_mapped_file(fd, tid, entry)) {
        close(fd);
        fd = -ESTALE;
    }
    return fd;
}

/* Looks for its path in the process's root directory, which is that of its mount namespace, and
 * then in ours: maps shows a path as its reader sees it, as far as it can be seen (d_path of the
 * kernel's fs/d_path.c), so that the path of a process in a chroot begins at our root. */
static int open_by_path(int proc_fd, pid_t tid, const char *path, const struct maps_entry *entry)
{
    char root[40];
    if (path[0] != '/')
        return -ENOENT;
    snprintf(root, sizeof root, "task/%d/root", tid);
    int root_fd = openat(proc_fd, root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root_fd < 0 ? -errno : open_if_mapped(root_fd, path + 1, tid, entry);
    if (root_fd >= 0)
        close(root_fd);
    if (fd < 0 && fd != -EMFILE) {
        int ours = open_if_mapped(AT_FDCWD, path, tid, entry);
        if (ours >= 0 || fd == -ENOENT)
            fd = ours;
    }
    return fd;
}

/* A file may really have a name that ends as maps shows a deleted one. */
static int open_by_name(int proc_fd, pid_t tid, const struct maps_entry *entry)
{
    if (!entry->deleted)
        return open_by_path(proc_fd, tid, entry->path, entry);
    char *path;
    if (asprintf(&path, "%s (deleted)", entry->path) < 0)
        return -ENOMEM;
    int fd = open_by_path(proc_fd, tid, path, entry);
    free(path);
    return fd >= 0 || fd == -EMFILE ? fd : -ENOENT;
}

/* Whether this is the file in the line of maps: another one may have been mapped there since the
 * line was read. In an overlay a file's inode may differ from the one in maps, but its path is the
 * same. */
static bool is_of_entry(int fd, const struct maps_entry *entry)
{
    struct stat status;
    char link[32], path[PATH_MAX];
    if (fstat(fd, &status) == 0 && status.st_ino == entry->inode)
        return true;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return false;
    path[length] = '\0';
    return maps_entry_is_at(entry, path);
}

/* Opens what is mapped there now through map_files, which needs a capability (proc(5)). */
static int open_by_place(int proc_fd, const struct maps_entry *entry)
{
    char path[64];
    snprintf(path, sizeof path, "map_files/%" PRIx64 "-%" PRIx64, entry->start, entry->end);
    int fd = open_regular(proc_fd, path);
    if (fd >= 0 && !is_of_entry(fd, entry)) {
        close(fd);
        fd = -ESTALE;
    }
    return fd;
}

/* Keeps a reserve, so that threads can still be read, and the profile named and written, when
 * modules take all other descriptors. */
static int keep_reserve(int fd)
{
    struct rlimit limit;
    if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit))
        return fd;
    rlim_t part = limit.rlim_cur / PART_FOR_OTHERS;
    if ((rlim_t)fd + (part < FDS_FOR_OTHERS ? part : FDS_FOR_OTHERS) < limit.rlim_cur)
        return fd;
    close(fd);
    return -EMFILE;
}

/* Tries its place; then its name; then, if it is the program, its link, which remains when the
 * program is deleted or replaced. */
int mapped_file_open(int proc_fd, pid_t tid, const struct maps_entry *entry)
{
    char path[32];
    int fd = open_by_place(proc_fd, entry);
    if (fd == -ENXIO)
        return fd;
    if (fd < 0)
        fd = open_by_name(proc_fd, tid, entry);
    if (fd < 0 && fd != -EMFILE) {
        snprintf(path, sizeof path, "task/%d/exe", tid);
        int program_fd = open_if_mapped(proc_fd, path, tid, entry);
        if (program_fd >= 0)
            fd = program_fd;
    }
    return keep_reserve(fd);
}
