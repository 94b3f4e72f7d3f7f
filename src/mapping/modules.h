/* The modules that processes have mapped. Each is opened when first seen, and kept open as long as
 * a mapping refers to it. Files of a file system that another process provides (FUSE) are copied,
 * if that process answers in time; a file that could not be is tried again when the mappings of a
 * process are next read. */
#ifndef FGPROF_MAPPING_MODULES_H
#define FGPROF_MAPPING_MODULES_H

#include "elf/query.h"

#include <pthread.h>
#include <sys/types.h>

struct maps_entry;

struct root {
    dev_t device;
    ino_t inode;
    int fd;
};

struct modules {
    struct queries *queries; /* reads the files' headers; NULL: that is done here */
    pthread_mutex_t *naming; /* held while another thread uses their files; NULL: there is none */
    struct root *roots;      /* root directories other than ours */
    size_t root_count, root_capacity;
    struct module **items; /* by number; NULL: the number is free */
    size_t count, capacity;
    size_t open_files;
    /* How many modules that no program has mapped any more may stay open, just for their names:
     * each takes a descriptor, and often the disk space of a deleted file. */
    size_t open_for_names_max;
    /* The time spent on waits for file systems that a process provides, less what had been given
     * back by waits_checked_ns. */
    uint64_t waited_ns, waits_checked_ns;
    uint32_t opened; /* how many in total */
};

/* Finds the module of the mapping `entry` of thread `tid` of the process whose /proc directory is
 * `proc_fd`; opens it when first seen. A file that can't be opened or read becomes a module that is
 * not readable. Returns 0 or -ENOMEM. */
int modules_get(struct modules *modules, int proc_fd, pid_t tid, const struct maps_entry *entry,
                struct module **ret_module);

size_t modules_bytes(const struct modules *modules);

/* Called before the module is closed. */
typedef void module_gone_fn(void *context, const struct module *module);

/* Closes the modules that no mapping refers to. */
void modules_close_unused(struct modules *modules, module_gone_fn *gone, void *context);

void modules_free(struct modules *modules);

/* Compares the file's first page, which in an ELF file has the header and usually the build id,
 * with the memory of thread `tid` there. `bias` is what is added to the module's own addresses.
 * Returns 0 if they are equal, and also if they can't be compared because no segment has that page
 * or the file can no longer be read; -ESTALE if they differ; -EFAULT if the memory can't be read.
 */
int module_compare(struct module *module, pid_t tid, uint64_t bias);

/* Opens the file behind the mapping `entry` of thread `tid`, but not another file that now has its
 * path. `proc_fd` is the process's directory in /proc. Returns a descriptor, or
 *   -ENOENT  it has been deleted, and can't be reached otherwise
 *   -ESTALE  another file is at its path
 *   -ENXIO   it is not a regular file
 *   -EAGAIN  another process has a lease on it (see base/regular_file.h)
 *   -EMFILE  the open-file limit, less our reserve, is reached
 * or another negative errno. */
int mapped_file_open(int proc_fd, pid_t tid, const struct maps_entry *entry);

#endif
