/* Whether a thread has run: the kernel's own count of how often it was given a CPU. */
#ifndef FGPROF_TARGET_ACTIVITY_H
#define FGPROF_TARGET_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

/* /proc/PID/task/TID/schedstat, as
 *   1187426 53201 37
 * (Documentation/scheduler/sched-stats.rst of the kernel). Reading it needs no permission and does
 * not touch the thread. */
struct activity {
    uint64_t running_ns;  /* 1187426: on a CPU */
    uint64_t waiting_ns;  /* 53201: runnable, waiting for one; grows when it gets it */
    uint64_t switched_in; /* 37: how often it got one */
};

/* Parses such a line. Returns false where it is none, or all 0, as on kernels without
 * CONFIG_SCHED_INFO: a thread that exists has run. */
bool activity_parse(const char *line, struct activity *ret_activity);

#endif
