/* Which CPUs are online. */
#ifndef FGPROF_PROC_CPUS_H
#define FGPROF_PROC_CPUS_H

#include <stddef.h>

/* CPU numbers, ascending. Starts zeroed. */
struct cpus {
    int *items;
    size_t count, capacity;
};

/* Reads /sys/devices/system/cpu/online or, if /sys is not mounted, /proc/stat. Returns 0, or a
 * negative errno, and then `cpus` may be incomplete. */
int cpus_read_online(struct cpus *cpus);

/* Parses a list like "0-3,5\n" (cpuset(7), "List format"). Returns 0, -EINVAL or -ENOMEM. */
int cpus_parse(struct cpus *cpus, const char *list);

/* Reads a file like /proc/stat (proc(5)). Returns 0, -ENODATA if it names no CPU, or another
 * negative errno. */
int cpus_read_stat(struct cpus *cpus, const char *path);

void cpus_free(struct cpus *cpus);

#endif
