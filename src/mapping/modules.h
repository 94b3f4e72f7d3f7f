/* The modules that processes have mapped, each opened at first sight, and kept open. */
#ifndef FGPROF_MAPPING_MODULES_H
#define FGPROF_MAPPING_MODULES_H

#include "elf/module.h"

#include <sys/types.h>

struct maps_entry;

struct root {
    dev_t device;
    ino_t inode;
    int fd;
};

struct modules {
    struct root *roots; /* other than ours */
    size_t root_count, root_capacity;
    struct module **items;
    size_t count, capacity;
};

/* Returns in *ret_module the module of the mapping `entry` of thread `tid` of the process whose
 * /proc directory is `proc_fd`, opening it at first sight. A file that can't be opened or read is a
 * module that is not readable. Returns 0 or -ENOMEM. */
int modules_get(struct modules *modules, int proc_fd, pid_t tid, const struct maps_entry *entry,
                struct module **ret_module);

void modules_free(struct modules *modules);

/* Opens the module's file once more, apart from it, for a thread of its own: nothing that is read
 * of the one touches the other. May be called while another thread uses `module`. For module_free.
 * Returns 0 or a negative errno. */
int module_twin(const struct module *module, struct module **ret_twin);

/* Compares the file's first page, which of an ELF file has its header, and mostly its build id,
 * with what thread `tid` has at its place; `bias` is what is added to the module's own addresses.
 * Returns 0 where they are equal, or no such page is mapped; -ESTALE, or -EFAULT where it can't be
 * read there. */
int module_compare(struct module *module, pid_t tid, uint64_t bias);

#endif
