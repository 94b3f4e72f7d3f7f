/* What a thread was doing when its snapshot was made: on a CPU, or off it and why. */
#ifndef FGPROF_PROC_THREAD_STATE_H
#define FGPROF_PROC_THREAD_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum thread_state {
    THREAD_UNKNOWN,  /* it was not captured */
    THREAD_RUNNING,  /* on a CPU */
    THREAD_RUNNABLE, /* waiting for one */
    THREAD_SLEEPING,
    THREAD_UNINTERRUPTIBLE, /* asleep, and no signal wakes it: disk, page fault, vfork */
    THREAD_STOPPED,         /* by a signal, or by a debugger */
    THREAD_STATE_COUNT
};

/* Whether the thread waits for something in the kernel, so that the call it waits in says for what.
 */
static inline bool thread_state_waits(enum thread_state state)
{
    return state == THREAD_SLEEPING || state == THREAD_UNINTERRUPTIBLE;
}

/* The state in a line of /proc/PID/task/TID/stat, as
 *   1234 (a) name) S 1 1234 1234 0 -1 4194560 177 ...
 * by its letter, here S (proc(5)). Of a thread that is seen not to run: R is one that woke, and
 * waits for a CPU. THREAD_UNKNOWN where there is no letter, or it has exited. */
enum thread_state thread_state_of_stat(const char *line);

/* The state of a thread that was neither asleep nor stopped when we woke up to sample: running, or
 * runnable where its waits for a CPU since it was first looked at, `waited_ns` together, began
 * before we woke: they are longer then than `awake_ns`, the time from our waking to the end of
 * those waits. A thread that waits because we took its CPU is one that was running. */
enum thread_state thread_state_by_wait(uint64_t waited_ns, uint64_t awake_ns);

#endif
