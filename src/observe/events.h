/* Perf events that sample, each with its ring: one for each CPU, or one for each thread.
 *
 * Events of CPUs cost threads nothing when these are switched, and see threads as soon as they are
 * born. They see all processes: samples of those that are not followed are dropped, in the kernel
 * if there is a filter, else when they are read. A CPU that comes online gets its event when
 * events_update_cpus is called. */
#ifndef FGPROF_OBSERVE_EVENTS_H
#define FGPROF_OBSERVE_EVENTS_H

#include "observe/bpf/perf_filter.h"
#include "observe/ring.h"
#include "proc/cpus.h"

struct event {
    struct ring ring;
    int cpu;                         /* -1: a thread's */
    pid_t tid;                       /* -1: a CPU's */
    uint64_t checked_ns, enabled_ns; /* a CPU's: how long it had sampled when it was last checked */
    unsigned samples;                /* perf_source.c: taken since its period was set */
    uint64_t next_ns;                /* perf_source.c: the time of the next record; see collect */
    uint64_t passed;                 /* faults.c: number of the next fault; see filter_find_fault */
    bool is_replaced;                /* it samples no more, but its ring may have samples */
};

struct followed_process {
    uint32_t process_id;
    uint64_t exec_ns;
};

/* Zeroed at first, but for what every event is opened with: */
struct events {
    struct perf_event_attr attr;
    size_t ring_bytes, ring_bytes_min; /* powers of two; rings are smaller if there are very many
                                          CPUs, or too little memory may be locked, but not smaller
                                          than this */
    struct filter *filter;             /* NULL: none */
    struct event *items;
    size_t count, capacity;
    struct cpus cpus;
    uint64_t cpus_read_ns;
    size_t next_check;                 /* the event to check next */
    struct followed_process *followed; /* by their ids, ascending */
    size_t followed_count, followed_capacity;
    uint64_t lost; /* samples that the kernel dropped because nobody collected them in time */
};

/* The power of two, at least a page, that holds so many bytes. */
size_t events_ring_bytes(size_t bytes);

/* The same, but no more than a CPU's ring may have, of those that are online (`cpus`). */
size_t events_cpu_ring_bytes(const struct events *events, size_t bytes);

/* Opens an event for `tid` on `cpu` as perf_event_open(2) takes them. It samples once a process is
 * followed. Returns 0 or a negative errno, as ring_open does. */
int events_add(struct events *events, pid_t tid, int cpu);
void events_drop(struct events *events, size_t number);
void events_drop_all(struct events *events);
/* Opens all events again, without a gap, as `attr` and the ring sizes are now. The old ones sample
 * no more, and stay until events_drop_replaced finds that their rings have been read. One that
 * can't be replaced stays as it is. */
void events_replace(struct events *events);
/* Returns whether there were any: then the others may have got other numbers. */
bool events_drop_replaced(struct events *events);
/* The same, but what can't be replaced is closed, with what its ring holds, and opened again. What
 * fails is missing from then on; events of CPUs come with the next events_update_cpus. */
void events_reopen(struct events *events);

/* Gives each CPU that is online an event that works. The event of a CPU that has gone offline stays
 * until its ring has been read, as one that was replaced does. Returns 0 or a negative errno. */
int events_update_cpus(struct events *events);
/* The same, if the last time was a while ago. */
int events_update_cpus_sometimes(struct events *events);

/* Records of this process are of interest from now on, or no longer. Returns 0 or a negative errno:
 * it is not followed. */
int events_follow(struct events *events, pid_t process_id);
void events_unfollow(struct events *events, pid_t process_id);
bool events_are_of(const struct events *events, pid_t process_id);

/* Takes in a record that is no sample: which processes have executed a program, and what was lost.
 */
void events_note(struct events *events, const struct record *record);

/* When the process last executed a program, by the records noted so far; 0: it has not. */
uint64_t events_exec_ns(const struct events *events, pid_t process_id);

void events_free(struct events *events);

#endif
