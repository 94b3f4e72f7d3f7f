/* A sampled process, as the sampling thread knows it. */
#ifndef FGPROF_SAMPLER_PROCESS_H
#define FGPROF_SAMPLER_PROCESS_H

#include "base/throttle.h"
#include "objects/collector.h"
#include "proc/process.h"
#include "proc/procfs.h"
#include "proc/program.h"
#include "proc/stack_areas.h"
#include "sampler/channel.h"
#include "sampler/threads.h"

/* listing.c: when its threads were listed. */
struct listing {
    struct thread_list list;
    uint64_t began_ns;      /* when the current listing began, or the last one */
    struct throttle listed; /* when the last whole listing began, and its CPU time */
    uint64_t changed_ns;    /* when the last listing that found a change began */
    bool is_wanted;         /* a thread has gone since the listing */
    bool lacks_begins;      /* threads lack their begin: */
    pid_t next_begin_tid;   /* the first of them */
};

/* activity_check.c: whether its threads have run unseen. */
struct activity_check {
    struct throttle reading; /* of the process's CPU time */
    bool is_read;            /* in this round: */
    uint64_t cpu_ns;         /* the CPU time; UINT64_MAX: it can't be read */
    uint64_t settled_tick;   /* all CPU time was accounted for then */
    uint64_t seen_ns;        /* how much is accounted for, up to then and by looks since */
    bool has_run_unseen;     /* cpu_ns was more */
    struct moment rest;      /* when it was last not more */
    bool is_sweeping;        /* a sweep is under way: */
    uint64_t began_tick;     /* when this sweep, or the last one, began */
    uint64_t sweep_tick;     /* all threads that were looked at before this tick are due */
    uint64_t sweep_began_ns; /* when this sweep, or the last one, began */
};

/* rounds.c: where looks and stops continue, because one round may not have time for all. */
struct turns {
    uint64_t round_ns, last_round_ns; /* when this round began, and the one before it */
    pid_t next_look_tid, next_stop_tid;
    bool has_looks_left; /* the round ran out of time before visiting every due thread */
    size_t stops_left;   /* threads in PHASE_TO_STOP */
};

/* rounds.c: which threads the current tick found awake. */
struct awake {
    struct awake_thread *items;
    size_t count, capacity;
    uint64_t tick;       /* the last tick; 0: none */
    uint64_t idle_ticks; /* ticks that found none, and are not reported yet */
};

/* naming.c: the threads whose names are to be read after the looks. */
struct names_due {
    pid_t *tids;
    size_t count, capacity;
};

/* python.c: the program's interpreter. */
struct sampled_python {
    struct python_place place;
    struct python_threads threads;
    struct throttle listing;
    uint64_t tasks_ns; /* CLOCK_MONOTONIC: the last tick that was reported for tasks; 0: none */
    /* Frames that BPF programs copied when the kernel took samples, kept until the samples are
     * read: the latest copies, the oldest at next_copy. NULL: there were none. */
    struct python_copy *copies;
    size_t next_copy;
};

/* goroutines.c: the goroutines of a Go program. */
struct goroutine_address {
    uint64_t address;
    uint32_t number;
};
struct sampled_goroutine {
    uint64_t read_ns;           /* CLOCK_MONOTONIC: when it was last read, or may have begun */
    struct goroutine_rest rest; /* as last reported */
};
struct sampled_goroutines {
    struct go_place place;
    struct sampled_goroutine *items; /* by number, as in allgs */
    size_t count, capacity;
    struct goroutine_address *order; /* by address, in parts */
    size_t order_capacity;
    bool is_reading;         /* a pass is under way: */
    size_t next;             /* it continues there in the order, */
    size_t end;              /* and lists further goroutines up to this number */
    size_t count_before;     /* when the last part of the order was sorted */
    uint64_t pass_ns;        /* CLOCK_MONOTONIC: when that pass, or the last one, began */
    uint64_t pass_before_ns; /* when the pass before began */
    uint64_t reported_ns;    /* the worker knows that goroutines have not moved up to then */
    bool has_read_all;       /* a pass has ended */
    uint64_t left_out;       /* goroutines beyond GOROUTINES_MAX */
    uint64_t unreadable, unreadable_before; /* or implausible: in this pass, and in the last */
    unsigned char *room;
    struct goroutine_changes *changes; /* not sent yet; NULL: none */
};

struct sampled_process {
    struct process process;
    uint64_t known_ns;  /* known since then, in CLOCK_BOOTTIME */
    uint32_t number;    /* in the recording, from 0 */
    bool has_inner_ids; /* it is in a PID namespace of its own */
    bool is_followed;   /* a descendant of another process, not selected by its id */
    bool has_exited;
    struct program *program; /* the program that it runs; NULL: it can't be looked at now */
    struct program_span span;
    uint64_t program_checked_ns;  /* 0: to be checked in the next round */
    struct stack_areas areas;     /* the program's */
    struct context_place context; /* of the program's threads */
    struct sampled_python python;
    struct sampled_goroutines goroutines;
    bool leaves_stack;  /* the program's threads go from one stack to another */
    bool is_in_a_hurry; /* report.c: all copies of its threads are urgent */
    struct threads threads;
    struct listing listing;
    struct activity_check activity_check;
    struct turns turns;
    struct awake awake;
    struct names_due names_due;
    struct object_process *objects; /* the collector's; NULL: none are wanted, or it has exited */
};

/* The process's thread with this id; NULL: it has none, or `process` is NULL. */
static inline struct thread *sampled_process_thread(struct sampled_process *process, pid_t tid)
{
    return process ? threads_find(&process->threads, tid) : NULL;
}

/* The thread's id in its own PID namespace; 0: not known. Read once, and only if it differs from
 * the id here. */
static inline pid_t sampled_process_inner_tid(const struct sampled_process *process,
                                              struct thread *thread)
{
    if (!thread->inner_tid)
        thread->inner_tid = process->has_inner_ids
                                ? procfs_inner_tid(process->process.proc_fd, thread->tid)
                                : thread->tid;
    return thread->inner_tid;
}

/* Whether the process still runs the known program; if not, the next round looks for the new
 * one. */
static inline bool sampled_process_is_current(struct sampled_process *process)
{
    bool is_current = process->program && program_is_current(process->program);
    if (!is_current)
        process->program_checked_ns = 0;
    return is_current;
}

/* See program_span_match. */
static inline enum program_match sampled_process_match(const struct sampled_process *process,
                                                       uint64_t exec_ns, uint64_t at_ns)
{
    return process->program ? program_span_match(&process->span, exec_ns, at_ns) : PROGRAM_LATER;
}

#endif
