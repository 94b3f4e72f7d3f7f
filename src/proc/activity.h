/* Whether a thread has run: the kernel's own count of how often it was given a CPU. */
#ifndef FGPROF_PROC_ACTIVITY_H
#define FGPROF_PROC_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

struct activity {
    uint64_t running_ns; /* on a CPU */
    uint64_t waiting_ns; /* waiting for a CPU; grows when the wait ends or the thread moves to
                            another CPU's queue */
    uint64_t switches;   /* how often it got a CPU; with counts_ends, how often it lost one */
    bool counts_ends;    /* `switches` misses a thread that woke and has not lost its CPU yet */
};

/* Parses a line of /proc/PID/task/TID/schedstat, such as
 *   1187426 53201 37
 * (Documentation/scheduler/sched-stats.rst of the kernel): nanoseconds on a CPU, nanoseconds
 * waiting for one, how often it got one. Reading it needs no permission and does not touch the
 * thread. Returns false if it is not such a line, or all 0: then the kernel does not count
 * (sched_info_on in its include/linux/sched/stat.h; without CONFIG_SCHED_INFO there is no such
 * file), or the thread has not run yet. */
bool activity_parse(const char *line, struct activity *ret_activity);

/* The same from /proc/PID/task/TID/status, which every kernel has (proc(5)):
 *   voluntary_ctxt_switches:        36
 *   nonvoluntary_ctxt_switches:     1
 * The times are 0. Returns false if either line is missing. */
bool activity_parse_status(const char *status, struct activity *ret_activity);

/* When a thread was last accounted for on a CPU, by that CPU's own clock, which can't be compared
 * with any other. If the thread sleeps or waits, this is when it left its CPU. */
struct last_run {
    uint64_t at_ns;
    uint64_t running_ns; /* as in struct activity, up to then */
    uint64_t migrations; /* from one CPU to another */
};

#define LAST_RUN_BYTES 512 /* of that file at most, from its beginning */

/* Parses /proc/PID/task/TID/sched (proc_sched_show_task in the kernel's kernel/sched/debug.c; there
 * with CONFIG_SCHED_DEBUG, and always since 6.15), with lines such as
 *   se.exec_start                                :      28598546.724947
 * in ms. Returns false if a line is missing. */
bool activity_parse_last_run(const char *sched, struct last_run *ret_last_run);

/* How long a thread was neither on a CPU nor waiting for one between two such readings, if it
 * waited for `waited_ns`; 0 if that is unknown, because it was on two CPUs. */
uint64_t last_run_slept_ns(const struct last_run *before, const struct last_run *after,
                           uint64_t waited_ns);

/* Whether the thread had left the CPU before another one got it at `came_ns`, by that CPU's clock.
 * Switching from one to the other takes less than a microsecond of that clock. */
bool last_run_is_before(const struct last_run *last_run, uint64_t came_ns);

/* The second of these lines: how often the thread was preempted, which is not a wait. Returns false
 * if it is missing. */
bool activity_parse_preemptions(const char *status, uint64_t *ret_preemptions);

#endif
