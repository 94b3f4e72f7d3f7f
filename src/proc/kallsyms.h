/* The kernel's functions by address, from /proc/kallsyms. Its lines are such as
 *   ffffffff81000000 T _text
 *   ffffffffc0201010 t ext4_readdir	[ext4]
 * The second field is as in nm(1). Modules and BPF programs, whose module is "[bpf]", come after
 * the kernel itself. */
#ifndef FGPROF_PROC_KALLSYMS_H
#define FGPROF_PROC_KALLSYMS_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

#define KALLSYMS_PATH "/proc/kallsyms"

struct kernel_symbol {
    uint64_t address;
    uint32_t name;   /* in kallsyms.names; KALLSYMS_NO_NAME: data, which ends the function before */
    uint32_t module; /* 0: the kernel itself */
};
#define KALLSYMS_NO_NAME UINT32_MAX

/* Zeroed: empty. */
struct kallsyms {
    struct kernel_symbol *symbols; /* by address, each address once */
    size_t count, capacity;
    struct buffer names; /* each ends with NUL */
    /* Of the functions by which threads sleep; 0: not known. */
    uint64_t scheduler_begin, scheduler_end;
};

/* Whether the file shows addresses: 0 if so, -EACCES if they are hidden (kptr_restrict in the
 * kernel's Documentation/admin-guide/sysctl/kernel.rst), or another negative errno, such as -ENOENT
 * if the kernel was built without symbols. Lines of any other form are skipped. */
int kallsyms_check(const char *path);

/* Replaces the contents of `kallsyms` by what the file has now. Returns 0, -ENOMEM or what
 * kallsyms_check returns; on error `kallsyms` is unchanged. */
int kallsyms_read(const char *path, struct kallsyms *kallsyms);

/* The name of the function that the address is in, as the kernel itself would name it; NULL if it
 * is in none. Valid until the next read. */
const char *kallsyms_find(const struct kallsyms *kallsyms, uint64_t address);

/* Whether the address is in one of the functions that /proc/PID/stack leaves out:
 * in_sched_functions in the kernel's kernel/sched/core.c. */
bool kallsyms_is_scheduler(const struct kallsyms *kallsyms, uint64_t address);

void kallsyms_free(struct kallsyms *kallsyms);

#endif
