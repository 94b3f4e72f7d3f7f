/* The processes of a control group: --cgroup, --unit and --container. */
#ifndef FGPROF_CLI_CGROUP_H
#define FGPROF_CLI_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* How a group is given. */
enum cgroup_by {
    CGROUP_BY_PATH,      /* its path, as in /proc/PID/cgroup or below CGROUP_ROOT */
    CGROUP_BY_UNIT,      /* the unit of systemd, "redis.service" or "redis" */
    CGROUP_BY_CONTAINER, /* the container's id, or its first characters */
};

#define CGROUP_ROOT "/sys/fs/cgroup"

/* Lists the processes in the group and in the groups below it, except this process and profilers'
 * helpers. Prints the reason on stderr and returns false if there is no such group, or nothing to
 * sample in it. The caller frees *ret_pids, even on failure. */
bool find_cgroup_processes(enum cgroup_by by, const char *name, pid_t **ret_pids,
                           size_t *ret_count);

#endif
