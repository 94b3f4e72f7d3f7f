/* The role of other threads in a thread's wait, by the kernel's record of switches: which thread
 * ended it, and which one had the CPU for which it waited. */
#ifndef FGPROF_OBSERVE_WAKE_H
#define FGPROF_OBSERVE_WAKE_H

#include "proc/procfs.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The kind of thread that ran. Either it ended the wait, or an interrupt did: the kernel's
 * functions show which. */
enum wake_thread {
    WAKE_BY_THREAD,
    WAKE_BY_KERNEL_THREAD, /* or a process's thread that works only in the kernel */
    WAKE_BY_IDLE,          /* the CPU had nothing to do */
};

#define WAKE_CHAIN_MAX 42

/* What ended a wait. */
struct wake_seen {
    uint64_t departed_ns; /* identifies the wait, as in struct record_seen; 0: the wait during which
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
    bool is_sampled; /* `thread` and `process` are its own and its process's number in the
                        recording */
    enum wake_thread kind;
    pid_t process_id, tid; /* its ids; 0: it is not visible in our PID namespace */
    uint32_t thread, process;
    char name[CPU_USER_NAME_BYTES], process_name[CPU_USER_NAME_BYTES];
};

#endif
