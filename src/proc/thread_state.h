/* What a thread was doing when its snapshot was made: on a CPU, or off it and why. */
#ifndef FGPROF_PROC_THREAD_STATE_H
#define FGPROF_PROC_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum thread_state {
    THREAD_UNKNOWN,  /* not captured */
    THREAD_RUNNING,  /* on a CPU */
    THREAD_RUNNABLE, /* waiting for a CPU */
    THREAD_SLEEPING,
    THREAD_UNINTERRUPTIBLE, /* asleep, and signals do not wake it: disk, page fault, vfork */
    THREAD_STOPPED,         /* by a signal, or by a debugger */
    THREAD_STATE_COUNT
};

/* Whether the thread waits for something in the kernel: its system call shows for what. */
static inline bool thread_state_waits(enum thread_state state)
{
    return state == THREAD_SLEEPING || state == THREAD_UNINTERRUPTIBLE;
}

/* The state in a line of /proc/PID/task/TID/stat, such as
 *   1234 (a) name) S 1 1234 1234 0 -1 4194560 177 ...
 * from its letter, here S (proc(5)). The thread has been seen not to run, so R means that it woke
 * and waits for a CPU. THREAD_UNKNOWN if there is no letter, or the thread has exited. */
enum thread_state thread_state_of_stat(const char *line);

/* The state of a thread that was neither asleep nor stopped when we woke up to sample. `waited_ns`
 * is how long it has waited for a CPU in total since it was first observed; `awake_ns` is the time
 * from our waking to the end of those waits. If `waited_ns` is longer, the waits began before we
 * woke and the thread is runnable; otherwise it is running. A thread that waits because we took its
 * CPU was running. */
enum thread_state thread_state_by_wait(uint64_t waited_ns, uint64_t awake_ns);

#endif
