#ifndef FGPROF_CLI_PUSH_CONTAINER_H
#define FGPROF_CLI_PUSH_CONTAINER_H

#include <stdbool.h>
#include <sys/types.h>

#define CONTAINER_ID_LENGTH 64

/* Finds the id of a container in the text of /proc/PID/cgroup, which need not be trusted: the last
 * 64 hexadecimal digits that stand alone, as Docker, containerd, CRI-O and Podman have them in the
 * names of their cgroups, such as
 *   0::/system.slice/docker-<id>.scope
 *   4:memory:/kubepods/burstable/pod<uid>/<id>
 * Returns false if there is none. */
bool container_id_in(const char *cgroup, char ret_id[CONTAINER_ID_LENGTH + 1]);

/* The id of the container that the process is in. */
bool container_id_of(pid_t pid, char ret_id[CONTAINER_ID_LENGTH + 1]);

#endif
