/* What keeps threads that could run off the CPUs: the quota of a control group, whose threads are
 * throttled once they have used it up (the kernel's Documentation/scheduler/sched-bwc.rst), and the
 * hypervisor, which may run another machine instead ("steal" in proc_stat(5)).
 *
 * A quota may be set for a process's group and for each one above it. A group counts only its own
 * throttling, so all of them are read, each once, however many processes are in it. */
#ifndef FGPROF_PROC_CPU_LIMITS_H
#define FGPROF_PROC_CPU_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_group;

/* Zeroed at first. */
struct cpu_limits {
    struct cpu_group *groups;
    size_t count, capacity;
    uint64_t steal_begin_ns, steal_ns;
    bool has_begun;
};

/* What they took since the processes were added. None of the times ever becomes less. */
struct cpu_losses {
    uint64_t throttled_ns;   /* summed over CPUs, as the kernel counts */
    uint64_t quota_millicpu; /* of the group that was throttled most, else the least; 0: none */
    uint64_t steal_ns;       /* summed over all CPUs of the machine */
};

/* Adds the groups of the process whose directory in /proc is `proc_fd`, except those already
 * present and those beyond a fixed number. Returns 0 or -ENOMEM. */
int cpu_limits_add(struct cpu_limits *limits, int proc_fd);

struct cpu_losses cpu_limits_read(struct cpu_limits *limits);

void cpu_limits_free(struct cpu_limits *limits);

/* ---- Files, as texts ---- */

#define CPU_GROUP_BYTES 1024

/* Finds the process's group in /proc/PID/cgroup (cgroups(7)), such as "/user.slice" or "" for the
 * root: in the version 2 hierarchy, or in the version 1 hierarchy of the cpu controller. Returns
 * false if there is none, or it is not below our own root. */
bool cpu_group_parse(const char *text, bool is_v2, char ret_path[CPU_GROUP_BYTES]);

/* How long a group was throttled, by its cpu.stat; 0: never, or it says nothing of that. */
uint64_t cpu_throttled_parse(const char *text);

/* The quota in thousandths of a CPU, from cpu.max ("max 100000", "150000 100000") or from the same
 * two numbers of cpu.cfs_quota_us and cpu.cfs_period_us; 0: none. */
uint64_t cpu_quota_parse(const char *text);

/* The time that the hypervisor took, by /proc/stat. */
uint64_t cpu_steal_parse(const char *text);

#endif
