/* What other threads had to do with a thread's wait, by the kernel's record of switches: which one
 * ended it, and which had the CPU that it waited for. */
#ifndef FGPROF_OBSERVE_WAKE_H
#define FGPROF_OBSERVE_WAKE_H

#include "proc/procfs.h"

#include <stdbool.h>
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

/* What ended a wait. */
struct wake_seen {
    uint64_t departed_ns; /* which wait: as in struct record_seen; 0: the one that it was in when
                             the record began */
    enum wake_thread thread;
    pid_t process_id, tid; /* its ids; 0: it is not visible in our PID namespace */
    char name[THREAD_NAME_BYTES];
    unsigned chain_depth; /* the kernel's functions, leaf first */
    uint64_t chain[WAKE_CHAIN_MAX];
};

#define CPU_USER_NAME_BYTES 16 /* TASK_COMM_LEN in the kernel's include/linux/sched.h */

/* Which thread had a CPU while others waited for it. */
struct cpu_user {
    bool is_known;
    bool is_sampled; /* `thread` and `process` are its numbers, and its process's, in the recording
                      */
    enum wake_thread kind;
    pid_t process_id, tid; /* its ids; 0: it is not visible in our PID namespace */
    uint32_t thread, process;
    char name[CPU_USER_NAME_BYTES], process_name[CPU_USER_NAME_BYTES];
};

#endif
