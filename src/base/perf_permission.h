/* The rights that a process needs for perf events of the kernel and of other users' processes, and
 * for BPF programs that observe these. */
#ifndef FGPROF_BASE_PERF_PERMISSION_H
#define FGPROF_BASE_PERF_PERMISSION_H

#include "base/kernel_version.h"

#include <stdint.h>

struct process_rights {
    struct kernel_version kernel;
    long paranoid;         /* kernel.perf_event_paranoid */
    uint64_t capabilities; /* effective ones, bit by bit */
    bool is_in_namespace;  /* its user namespace is not the initial one: they do not count */
};

/* Those of this process. */
struct process_rights process_rights_read(void);

/* The least capability that would help after perf_event_open(2) has failed with this errno, as text
 * for the user; NULL if the process has it. EACCES comes from the kernel itself; EPERM from a
 * seccomp filter or a container. */
const char *perf_permission_needed(const struct process_rights *rights, int error);
/* The same after bpf(2) has failed with EPERM. */
const char *bpf_permission_needed(const struct process_rights *rights);

/* With which kernel.perf_event_paranoid the process, as it is, would have perf events. */
int perf_permission_paranoid(const struct process_rights *rights);

#endif
