#include "wait/open_files.h"
#include "base/procfs_file.h"
#include "base/array.h"
#include "base/upper_bound.h"
#include "wait/file_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
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
    FILE *file = procfs_open(proc_fd, path);
    if (!file)
        return -errno;
    while (getline(&line, &line_bytes, file) > 0)
        descriptor_info_add_line(&info, line);
    free(line);
    fclose(file);
    *ret_info = info;
    return 0;
}

#define FILES_MAX 262144 /* of all processes */
#define TESTED_MAX 256   /* descriptors of one resource */

/* Reads what the descriptor is. Returns false if only its own process can have it. */
static bool read_resource(int fds_fd, const char *name, struct resource *ret_resource)
{
    char link[PATH_MAX];
    ssize_t length = readlinkat(fds_fd, name, link, sizeof link - 1);
    if (length < 0)
        return false;
    link[length] = '\0';
    *ret_resource = resource_of_link(link, 1, 0);
    return ret_resource->process_id == 0;
}

static int add_files(struct open_files *files, pid_t process_id, DIR *fds)
{
    const struct dirent *entry;
    while ((entry = readdir(fds))) {
        struct resource resource;
        if (*entry->d_name == '.' || !read_resource(dirfd(fds), entry->d_name, &resource))
            continue;
        if (files->count == FILES_MAX) {
            files->is_partial = true;
            return 0;
        }
        const struct open_file file = {
            .key = resource.key,
            .kind = resource.kind,
            .process_id = process_id,
            .fd = atoi(entry->d_name),
        };
        if (array_append(&files->items, &files->count, &files->capacity, file))
            return -ENOMEM;
    }
    return 0;
}

int open_files_add(struct open_files *files, pid_t process_id, int proc_fd)
{
    DIR *fds = procfs_open_directory(proc_fd, "fd");
    if (!fds) {
        /* A process that has ended has none open. */
        files->is_partial = files->is_partial || (errno != ENOENT && errno != ESRCH);
        return 0;
    }
    int err = add_files(files, process_id, fds);
    closedir(fds);
    return err;
}

static int compare_keys(const void *a, const void *b)
{
    const struct open_file *left = a, *right = b;
    int order = ORDER(left->key, right->key);
    return order ? order : ORDER(left->process_id, right->process_id);
}

void open_files_sort(struct open_files *files)
{
    array_sort(files->items, files->count, compare_keys);
}

void open_files_free(struct open_files *files)
{
    free(files->items);
    *files = (struct open_files){0};
}

bool open_files_have(const struct open_files *files, const struct resource *resource)
{
    size_t end = UPPER_BOUND(files->items, files->count, key, resource->key);
    for (size_t i = end; i-- > 0 && files->items[i].key == resource->key;) {
        if (files->items[i].kind == resource->kind)
            return true;
    }
    return false;
}

/* Whether the process still has the file open there, and it passes the test. */
static bool passes(const struct open_file *file, open_files_test *test)
{
    char path[32], name[32];
    struct resource now;
    struct descriptor_info info;
    snprintf(path, sizeof path, "/proc/%d", file->process_id);
    int proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc_fd < 0)
        return false;
    snprintf(name, sizeof name, "fd/%d", file->fd);
    bool is_same =
        read_resource(proc_fd, name, &now) && now.kind == file->kind && now.key == file->key;
    bool does_pass = is_same && descriptor_info_read(proc_fd, file->fd, &info) == 0 && test(&info);
    close(proc_fd);
    return does_pass;
}

pid_t open_files_process(const struct open_files *files, const struct resource *resource,
                         open_files_test *test)
{
    size_t end = UPPER_BOUND(files->items, files->count, key, resource->key), tested = 0;
    pid_t found = 0;
    if (files->is_partial)
        return 0;
    for (size_t i = end; i-- > 0 && files->items[i].key == resource->key;) {
        const struct open_file *file = &files->items[i];
        if (file->kind != resource->kind || file->process_id == found)
            continue;
        if (test && ++tested > TESTED_MAX)
            return 0;
        if (test && !passes(file, test))
            continue;
        if (found)
            return 0;
        found = file->process_id;
    }
    return found;
}
