/* What ended a thread's wait, by the kernel's record of switches. */
#ifndef FGPROF_OBSERVE_WAKE_H
#define FGPROF_OBSERVE_WAKE_H

#include "proc/procfs.h"

#include <stdint.h>
#include <sys/types.h>

/* Which kind of thread ran. It ended the wait, or an interrupt did so: the kernel's functions
 * tell. */
enum wake_thread {
    WAKE_BY_THREAD,
    WAKE_BY_KERNEL_THREAD, /* or one that only works for a process in the kernel */
    WAKE_BY_IDLE,          /* the CPU had nothing to do */
};

#define WAKE_CHAIN_MAX 42

struct wake_seen {
    uint64_t departed_ns; /* which wait: as in struct record_seen; 0: the one that it was in when
                             the record began */
    enum wake_thread thread;
    pid_t process_id, tid; /* its ids; 0: it is not visible in our PID namespace */
    char name[THREAD_NAME_BYTES];
    unsigned chain_depth; /* the kernel's functions, leaf first */
    uint64_t chain[WAKE_CHAIN_MAX];
};

#endif
