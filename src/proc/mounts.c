#include "proc/mounts.h"
#include "base/array.h"
#include "base/procfs_file.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The fields used of a line of mountinfo (proc(5)), such as
 *   36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue */
struct mount {
    unsigned dev_major, dev_minor; /* 98:0 */
    const char *directory;         /* "/mnt2": points into the line */
    bool is_of_process;            /* by its type, ext3 */
};

static bool parse(char *line, struct mount *ret_mount)
{
    int at = 0, directory_end = 0;
    char *type = strstr(line, " - ");
    if (!type ||
        sscanf(line, "%*d %*d %u:%u %*s %n%*s%n", &ret_mount->dev_major, &ret_mount->dev_minor, &at,
               &directory_end) != 2 ||
        !at || !directory_end)
        return false;
    type += strlen(" - ");
    line[directory_end] = '\0';
    ret_mount->directory = line + at;
    /* Only root may mount fuseblk, FUSE on a block device (fuse_get_tree in the kernel's
     * fs/fuse/inode.c). */
    ret_mount->is_of_process = strncmp(type, "fuse ", 5) == 0 || strncmp(type, "fuse.", 5) == 0;
    return true;
}

/* Calls `visit` for each mount until it returns true. Returns whether it did. */
static bool find(int dir_fd, const char *path, bool (*visit)(void *, const struct mount *),
                 void *context)
{
    FILE *file = procfs_open(dir_fd, path);
    char *line = NULL;
    size_t capacity = 0;
    bool is_found = false;
    struct mount mount;
    while (file && !is_found && getline(&line, &capacity, file) > 0)
        is_found = parse(line, &mount) && visit(context, &mount);
    free(line);
    if (file)
        fclose(file);
    return is_found;
}

struct device {
    unsigned major, minor;
    bool is_of_process;
};

static bool is_device(void *context, const struct mount *mount)
{
    struct device *device = context;
    device->is_of_process = mount->is_of_process;
    return mount->dev_major == device->major && mount->dev_minor == device->minor;
}

static bool has_memory_on(unsigned flags, unsigned dev_major, unsigned dev_minor)
{
    struct stat status;
    int fd = memfd_create("fgprof-device", MFD_CLOEXEC | flags);
    bool is_there = fd >= 0 && fstat(fd, &status) == 0 && major(status.st_dev) == dev_major &&
                    minor(status.st_dev) == dev_minor;
    if (fd >= 0)
        close(fd);
    return is_there;
}

/* Such memory is a file of a mount that the kernel keeps to itself (shmem_init in its mm/shmem.c);
 * huge pages have one for each of their sizes (init_hugetlbfs_fs in fs/hugetlbfs/inode.c). */
bool mounts_is_shared_memory(unsigned dev_major, unsigned dev_minor)
{
    static const unsigned flags[] = {
        0,
        MFD_HUGETLB | MFD_HUGE_2MB,
        MFD_HUGETLB | MFD_HUGE_1GB,
#if defined(__aarch64__)
        MFD_HUGETLB | MFD_HUGE_64KB,
        MFD_HUGETLB | MFD_HUGE_32MB,
        MFD_HUGETLB | MFD_HUGE_512MB,
        MFD_HUGETLB | MFD_HUGE_16GB,
#endif
    };
    for (size_t i = 0; i < COUNT_OF(flags) && !dev_major; i++) {
        if (has_memory_on(flags[i], dev_major, dev_minor))
            return true;
    }
    return false;
}

bool mounts_may_hang(int proc_fd, unsigned dev_major, unsigned dev_minor)
{
    struct device device = {dev_major, dev_minor, false};
    /* File systems without a block device, FUSE among them, have major number 0. */
    if (dev_major || mounts_is_shared_memory(dev_major, dev_minor))
        return false;
    return (!find(AT_FDCWD, "/proc/self/mountinfo", is_device, &device) &&
            !find(proc_fd, "mountinfo", is_device, &device)) ||
           device.is_of_process;
}

struct place {
    const char *directory;
    size_t deepest; /* how long the path is of the deepest mount that holds the directory */
    bool is_of_process;
};

/* The last of several mounts at the same place is on top. */
static bool note_place(void *context, const struct mount *mount)
{
    struct place *place = context;
    size_t length = strlen(mount->directory);
    bool is_root = length == 1;
    bool holds = is_root || (strncmp(mount->directory, place->directory, length) == 0 &&
                             (!place->directory[length] || place->directory[length] == '/'));
    if (holds && length >= place->deepest) {
        place->deepest = length;
        place->is_of_process = mount->is_of_process;
    }
    return false;
}

bool mounts_may_hang_at(int proc_fd, const char *directory)
{
    struct place place = {.directory = directory};
    find(proc_fd, "mountinfo", note_place, &place);
    return place.is_of_process;
}
