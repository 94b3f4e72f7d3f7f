/* Which thread had a CPU while others waited for it, by the kernel's record of switches. */
#ifndef FGPROF_OBSERVE_CPU_USER_H
#define FGPROF_OBSERVE_CPU_USER_H

#include "observe/wake.h"

#include <stdbool.h>

#define CPU_USER_NAME_BYTES 16 /* TASK_COMM_LEN in the kernel's include/linux/sched.h */

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
