/* Perf events that sample, each with its ring: one for each CPU, or one for each thread.
 *
 * CPU events add no cost to context switches, and see threads as soon as they are born. They see
 * all processes: samples of processes that are not followed are dropped, in the kernel if there is
 * a filter, else when they are read. A CPU that comes online gets its event when events_update_cpus
 * is called. */
#ifndef FGPROF_OBSERVE_EVENTS_H
#define FGPROF_OBSERVE_EVENTS_H

#include "observe/bpf/perf_filter.h"
#include "observe/ring.h"
#include "proc/cpus.h"

struct event {
    struct ring ring;
    int cpu;   /* -1: a thread's */
    pid_t tid; /* -1: a CPU's */
    uint64_t checked_ns,
        enabled_ns;   /* a CPU's: when it was last checked, and how long it had sampled */
    unsigned samples; /* perf_source.c: samples taken since its period was set */
    uint64_t next_ns; /* perf_source.c: the time of the next record; see collect */
    uint64_t passed;  /* faults.c: the next fault's number; see filter_find_fault */
    bool is_replaced; /* it no longer samples, but its ring may hold samples */
};

struct followed_process {
    uint32_t process_id;
    uint64_t exec_ns;
};

/* All zeros at first, except the parameters with which every event is opened: */
struct events {
    struct perf_event_attr attr;
    size_t ring_bytes, ring_bytes_min; /* powers of two; rings are smaller if there are very many
                                          CPUs, or too little memory may be locked, but at least
                                          ring_bytes_min */
    struct filter *filter;             /* NULL: none */
    struct event *items;
    size_t count, capacity;
    struct cpus cpus;
    uint64_t cpus_read_ns;
    size_t next_check;                 /* the event to check next */
    struct followed_process *followed; /* by their ids, ascending */
    size_t followed_count, followed_capacity;
    uint64_t lost; /* samples that the kernel dropped because they were not collected in time */
};

/* The power of two, at least a page, that is enough for this many bytes. */
size_t events_ring_bytes(size_t bytes);

/* The same, but at most what the ring of each online CPU (`cpus`) may have. */
size_t events_cpu_ring_bytes(const struct events *events, size_t bytes);

/* Opens an event for `tid` on `cpu`, as in perf_event_open(2). It samples once a process is
 * followed. Returns 0 or a negative errno, as ring_open does. */
int events_add(struct events *events, pid_t tid, int cpu);
void events_drop(struct events *events, size_t number);
void events_drop_all(struct events *events);
/* Opens all events again, without a gap, with the current `attr` and ring sizes. The old events no
 * longer sample, and stay until events_drop_replaced finds that their rings have been read. An
 * event that can't be replaced stays as it is. */
void events_replace(struct events *events);
/* Drops replaced events whose rings have been read. Returns whether there were any: if so, the
 * others may have other numbers now. */
bool events_drop_replaced(struct events *events);
/* Like events_replace, but an event that can't be replaced is closed, with the contents of its
 * ring, and opened again. If that fails, the event is missing from then on; CPU events come back
 * with the next events_update_cpus. */
void events_reopen(struct events *events);

/* Gives each online CPU a working event. The event of a CPU that has gone offline stays until its
 * ring has been read, like a replaced event. Returns 0 or a negative errno. */
int events_update_cpus(struct events *events);
/* The same, if the last update was a while ago. */
int events_update_cpus_sometimes(struct events *events);

/* Starts or stops taking records of this process. Returns 0 or a negative errno, on which the
 * process is not followed. */
int events_follow(struct events *events, pid_t process_id);
void events_unfollow(struct events *events, pid_t process_id);
bool events_are_of(const struct events *events, pid_t process_id);

/* Handles a record that is not a sample: notes execs and lost samples. */
void events_note(struct events *events, const struct record *record);

/* When the process last executed a program, by the records noted so far; 0: never. */
uint64_t events_exec_ns(const struct events *events, pid_t process_id);

void events_free(struct events *events);

#endif
