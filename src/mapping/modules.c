#include "mapping/modules.h"
#include "base/array.h"
#include "base/bounded_copy.h"
#include "base/clock.h"
#include "base/file_limit.h"
#include "elf/elf_file.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "proc/mounts.h"
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* How long to wait for files on file systems that a process provides (FUSE): this long in all, of
 * which one part in WAITS_PART_OF_TIME of the elapsed time is given back. No wait begins with less
 * than WAIT_MIN_NS left: that would be spent before a healthy file system has sent a large file. */
#define WAITS_MAX_NS 5000000000u
#define WAITS_PART_OF_TIME 100
#define WAIT_MIN_NS 1000000000u
/* No file is copied once the copies of other files take this much memory. */
#define COPIES_BYTES_MAX ((uint64_t)1 << 30)
#define STAT_BLOCK_BYTES 512 /* stat(3type) */
#define COMPARED_BYTES_MAX (64u << 10)
/* Descriptors kept free below the limit of open files: this many, or a quarter of a low limit. */
#define FDS_FOR_OTHERS 64
#define PART_FOR_OTHERS 4

static int open_regular(int dir_fd, const char *path)
{
    int fd = open_regular_file(dir_fd, path, O_NONBLOCK);
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
            break; /* the file ends, but the mapping continues to the end of its page */
        if (got <= 0 ||
            memory_read_of_file(tid, entry->start + at, in_memory, (size_t)got) != (size_t)got ||
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

/* Looks the path up in the process's root directory, which is that of its mount namespace, and then
 * in ours: maps shows a path as far as its reader can see it (d_path of the kernel's fs/d_path.c),
 * so for a process in a chroot the path begins at our root. */
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

/* A file may really have a name that ends as maps shows a deleted one. Allocates nothing: see
 * bounded_open_fn. */
static int open_by_name(int proc_fd, pid_t tid, const struct maps_entry *entry)
{
    if (!entry->deleted)
        return open_by_path(proc_fd, tid, entry->path, entry);
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s (deleted)", entry->path) >= (int)sizeof path)
        return -ENOENT;
    int fd = open_by_path(proc_fd, tid, path, entry);
    return fd >= 0 || fd == -EMFILE ? fd : -ENOENT;
}

/* Whether this is the file in the line of maps: another may have been mapped there since the line
 * was read. In an overlay a file's inode may differ from the one in maps, but its path is the same.
 */
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

#define OPEN_FOR_NAMES_MAX 1000u

static size_t open_for_names_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / PART_FOR_OTHERS > OPEN_FOR_NAMES_MAX)
        return OPEN_FOR_NAMES_MAX;
    return limit.rlim_cur / PART_FOR_OTHERS;
}

/* Keeps some descriptors in reserve, so that threads can still be read, and the profile named and
 * written, when modules take all the others. */
static int keep_reserve(int fd)
{
    if (fd < 0 || file_limit_leaves(fd, FDS_FOR_OTHERS))
        return fd;
    close(fd);
    return -EMFILE;
}

/* Shared memory has no path: a file where its name seems to lead is another one, and its file
 * system may hang. */
static bool has_path(const struct maps_entry *entry)
{
    return !entry->deleted || !mounts_is_shared_memory(entry->dev_major, entry->dev_minor);
}

/* Tries the mapping's /proc link; then the path; then, for the program itself, its /proc link,
 * which still works when the program is deleted or replaced. */
int mapped_file_open(int proc_fd, pid_t tid, const struct maps_entry *entry)
{
    char path[32];
    int fd = open_by_place(proc_fd, entry);
    if (fd == -ENXIO || fd == -EAGAIN)
        return fd;
    if (fd < 0)
        fd = has_path(entry) ? open_by_name(proc_fd, tid, entry) : -ENOENT;
    if (fd < 0 && fd != -EMFILE) {
        snprintf(path, sizeof path, "task/%d/exe", tid);
        int program_fd = open_if_mapped(proc_fd, path, tid, entry);
        if (program_fd >= 0 || program_fd == -EAGAIN)
            fd = program_fd;
    }
    return keep_reserve(fd);
}

#define VDSO_PATH "[vdso]"
#define VDSO_MAX_BYTES (1u << 20)

struct opening {
    pid_t tid;
    const struct maps_entry *entry;
};

static int open_in_other_process(void *context, int proc_fd)
{
    const struct opening *opening = context;
    return mapped_file_open(proc_fd, opening->tid, opening->entry);
}

static uint64_t copied_bytes(const struct modules *modules)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < modules->count; i++)
        bytes += modules->items[i] ? modules->items[i]->image.copied_bytes : 0;
    return bytes;
}

/* How much time to wait is left, or -ETIMEDOUT. */
static int wait_left(struct modules *modules, uint64_t *ret_wait_ns)
{
    uint64_t now_ns = monotonic_ns();
    uint64_t back_ns = (now_ns - modules->waits_checked_ns) / WAITS_PART_OF_TIME;
    modules->waited_ns -= back_ns < modules->waited_ns ? back_ns : modules->waited_ns;
    modules->waits_checked_ns = now_ns;
    if (modules->waited_ns + WAIT_MIN_NS > WAITS_MAX_NS)
        return -ETIMEDOUT;
    *ret_wait_ns = WAITS_MAX_NS - modules->waited_ns;
    return 0;
}

/* Opens a copy of the file, which takes *ret_bytes of memory. Returns a descriptor or a negative
 * errno. */
static int open_copy(struct modules *modules, int proc_fd, pid_t tid,
                     const struct maps_entry *entry, size_t *ret_bytes)
{
    struct opening opening = {tid, entry};
    struct stat status;
    uint64_t wait_ns;
    if (copied_bytes(modules) >= COPIES_BYTES_MAX)
        return -EAGAIN;
    int err = wait_left(modules, &wait_ns);
    if (err)
        return err;
    int fd = keep_reserve(bounded_copy(open_in_other_process, &opening, proc_fd, &wait_ns));
    modules->waited_ns = WAITS_MAX_NS - wait_ns;
    if (fd >= 0 && fstat(fd, &status) == 0)
        *ret_bytes = (size_t)status.st_blocks * STAT_BLOCK_BYTES;
    return fd;
}

static int open_file_image(struct modules *modules, struct module *module, int proc_fd, pid_t tid,
                           const struct maps_entry *entry)
{
    size_t bytes = 0;
    int fd = mounts_may_hang(proc_fd, entry->dev_major, entry->dev_minor)
                 ? open_copy(modules, proc_fd, tid, entry, &bytes)
                 : mapped_file_open(proc_fd, tid, entry);
    if (fd < 0)
        return fd;
    int err = image_open_fd(&module->image, fd);
    if (err)
        close(fd);
    else
        module->image.copied_bytes = bytes;
    return err;
}

/* The vdso is not a file: all of it is in the process's memory. */
static int open_vdso_image(struct module *module, pid_t tid, const struct maps_entry *entry)
{
    uint64_t bytes = entry->end - entry->start;
    if (bytes > VDSO_MAX_BYTES)
        return -ENOEXEC;
    unsigned char *memory = malloc(bytes);
    if (!memory)
        return -ENOMEM;
    if (memory_read_of_file(tid, entry->start, memory, bytes) != bytes) {
        free(memory);
        return -EIO;
    }
    image_open_memory(&module->image, memory, bytes);
    return 0;
}

/* Goes by the name that its readers look for (perf's jitdump-specification.txt). */
static bool is_jitdump(const char *path)
{
    return path && fnmatch("*/jit-*.dump", path, 0) == 0;
}

int module_compare(struct module *module, pid_t tid, uint64_t bias)
{
    unsigned char in_file[4096], in_memory[sizeof in_file];
    size_t bytes = module->image.bytes < sizeof in_file ? module->image.bytes : sizeof in_file;
    uint64_t address;
    if (!module_address_of_offset(module, 0, &address) ||
        !image_read(&module->image, 0, in_file, bytes))
        return 0;
    if (memory_read_of_file(tid, address + bias, in_memory, bytes) != bytes)
        return -EFAULT;
    return memcmp(in_file, in_memory, bytes) == 0 ? 0 : -ESTALE;
}

/* Whether the file was written to after it was mapped. An overlay then copies it to a new file with
 * the same path and inode, and the mapping keeps the old contents (the kernel's
 * Documentation/filesystems/overlayfs.rst, "Non-standard behavior"). */
static bool is_other_copy(struct module *module, pid_t tid, const struct maps_entry *entry)
{
    struct statfs status;
    uint64_t address;
    return module->image.fd >= 0 && fstatfs(module->image.fd, &status) == 0 &&
           status.f_type == OVERLAYFS_SUPER_MAGIC &&
           module_address_of_offset(module, entry->offset, &address) &&
           module_compare(module, tid, entry->start - address) == -ESTALE;
}

static bool is_gone(int proc_fd, pid_t tid)
{
    char path[32];
    snprintf(path, sizeof path, "task/%d", tid);
    return faccessat(proc_fd, path, F_OK, 0) != 0;
}

static int read_headers(const struct modules *modules, struct module *module)
{
    struct queries *queries = modules->queries;
    return queries ? queries->read(queries, module) : elf_file_read(module);
}

static int module_open(struct modules *modules, uint32_t number, int proc_fd, pid_t tid,
                       const struct maps_entry *entry, struct module **ret_module)
{
    struct module *module = calloc(1, sizeof *module);
    if (!module)
        return -ENOMEM;
    module->image.fd = -1;
    module->number = number;
    module->serial = ++modules->opened;
    module->dev_major = entry->dev_major;
    module->dev_minor = entry->dev_minor;
    module->inode = entry->inode;
    module->path = strdup(entry->path);
    int err = module->path ? 0 : -ENOMEM;
    if (!err) {
        err = entry->inode ? open_file_image(modules, module, proc_fd, tid, entry)
                           : open_vdso_image(module, tid, entry);
    }
    module->is_readable = !err;
    if (!err)
        err = read_headers(modules, module);
    if (!err && is_other_copy(module, tid, entry))
        err = -ESTALE;
    if (err && !is_jitdump(module->path))
        image_close(&module->image);
    module->is_readable = !err;
    module->is_orphan = err == -EAGAIN || (err && is_gone(proc_fd, tid));
    module->error = err;
    if (err == -ENOMEM) {
        module_free(module);
        return -ENOMEM;
    }
    *ret_module = module;
    return 0;
}

/* A file that could not be had in time is tried again once there is time to wait for it. */
static bool is_same(struct modules *modules, const struct module *module,
                    const struct maps_entry *entry)
{
    uint64_t wait_ns;
    return !module->is_orphan && module->inode == entry->inode &&
           module->dev_major == entry->dev_major && module->dev_minor == entry->dev_minor &&
           strcmp(module->path, entry->path) == 0 &&
           (module->error != -ETIMEDOUT || wait_left(modules, &wait_ns));
}

/* The descriptor + 1 of the process's root directory, kept open because its module may be named
 * after the process has ended. 0 if it is our root, or can't be opened. */
static int keep_root(struct modules *modules, int proc_fd, pid_t tid)
{
    char path[40];
    struct stat ours, status;
    snprintf(path, sizeof path, "task/%d/root", tid);
    if (stat("/", &ours) || fstatat(proc_fd, path, &status, 0) ||
        (status.st_dev == ours.st_dev && status.st_ino == ours.st_ino))
        return 0;
    for (size_t i = 0; i < modules->root_count; i++) {
        if (modules->roots[i].device == status.st_dev && modules->roots[i].inode == status.st_ino)
            return modules->roots[i].fd + 1;
    }
    if (array_reserve(&modules->roots, &modules->root_capacity, modules->root_count + 1))
        return 0;
    int fd = keep_reserve(openat(proc_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return 0;
    modules->roots[modules->root_count++] = (struct root){status.st_dev, status.st_ino, fd};
    return fd + 1;
}

int modules_get(struct modules *modules, int proc_fd, pid_t tid, const struct maps_entry *entry,
                struct module **ret_module)
{
    *ret_module = NULL;
    if (!entry->inode && strcmp(entry->path, VDSO_PATH) != 0)
        return 0;
    size_t number = modules->count;
    for (size_t i = 0; i < modules->count; i++) {
        if (!modules->items[i]) {
            number = i;
        } else if (is_same(modules, modules->items[i], entry)) {
            *ret_module = modules->items[i];
            return 0;
        }
    }
    if (array_reserve(&modules->items, &modules->capacity, number + 1))
        return -ENOMEM;
    if (!modules->open_for_names_max)
        modules->open_for_names_max = open_for_names_max();
    int err = module_open(modules, (uint32_t)number, proc_fd, tid, entry, ret_module);
    if (err)
        return err;
    (*ret_module)->root_fd_plus_1 = keep_root(modules, proc_fd, tid);
    modules->items[number] = *ret_module;
    modules->count += number == modules->count;
    modules->open_files += (*ret_module)->image.fd >= 0;
    return 0;
}

size_t modules_bytes(const struct modules *modules)
{
    size_t bytes = modules->capacity * sizeof *modules->items;
    for (size_t i = 0; i < modules->count; i++) {
        if (modules->items[i])
            bytes += module_bytes(modules->items[i]);
    }
    return bytes;
}

static bool is_root_in_use(const struct modules *modules, const struct root *root)
{
    for (size_t i = 0; i < modules->count; i++) {
        if (modules->items[i] && modules->items[i]->root_fd_plus_1 == root->fd + 1)
            return true;
    }
    return false;
}

static void close_unused_roots(struct modules *modules)
{
    size_t kept = 0;
    for (size_t i = 0; i < modules->root_count; i++) {
        if (is_root_in_use(modules, &modules->roots[i]))
            modules->roots[kept++] = modules->roots[i];
        else
            close(modules->roots[i].fd);
    }
    modules->root_count = kept;
}

void modules_close_unused(struct modules *modules, module_gone_fn *gone, void *context)
{
    for (size_t i = 0; i < modules->count; i++) {
        struct module *module = modules->items[i];
        if (!module || module->users)
            continue;
        gone(context, module);
        modules->open_files -= module->image.fd >= 0;
        module_free(module);
        modules->items[i] = NULL;
    }
    close_unused_roots(modules);
}

void modules_free(struct modules *modules)
{
    for (size_t i = 0; i < modules->count; i++)
        module_free(modules->items[i]);
    for (size_t i = 0; i < modules->root_count; i++)
        close(modules->roots[i].fd);
    free(modules->roots);
    free(modules->items);
    if (modules->waited_ns)
        bounded_copy_end();
    *modules = (struct modules){0};
}
