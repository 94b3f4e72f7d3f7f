#include "proc/thread_state.h"

#include <string.h>

/* When our timer's interrupt takes a thread's CPU, the thread loses it slightly before our clock
 * can be read. On a virtual machine the difference may be tens of microseconds. */
#define WAKING_NS 50000u

enum thread_state thread_state_of_stat(const char *line)
{
    /* The name may hold spaces and ')'. */
    const char *end_of_name = strrchr(line, ')');
    if (!end_of_name || end_of_name[1] != ' ')
        return THREAD_UNKNOWN;
    switch (end_of_name[2]) {
    case 'R':
        return THREAD_RUNNABLE;
    case 'S':
    case 'I': /* idle kernel threads */
        return THREAD_SLEEPING;
    case 'D':
        return THREAD_UNINTERRUPTIBLE;
    case 'T':
    case 't':
        return THREAD_STOPPED;
    default:
        return THREAD_UNKNOWN;
    }
}

enum thread_state thread_state_by_wait(uint64_t waited_ns, uint64_t awake_ns)
{
    return waited_ns > awake_ns + WAKING_NS ? THREAD_RUNNABLE : THREAD_RUNNING;
}
