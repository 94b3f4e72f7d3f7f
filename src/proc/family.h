/* Finds the descendants of processes as they are born.
 *
 * The kernel gives out ids in ascending order, and tells the last one: so those that were born
 * since the last look are among the numbers between, and each is asked for its parent. That costs
 * the same however many threads a parent has. An id is given out before its process is there to be
 * seen (copy_process in the kernel's fork.c), on a busy machine long before: so one that nobody had
 * is asked for again, for some time. /proc/PID/task/TID/children would be a file for each
 * thread, and leaves children out while others exit (proc_tid_children(5)). From time to time all
 * processes are looked at, in case that number is not to be relied on: lxcfs shows a container one
 * that is old.
 *
 * Of a process that is born and loses its parent between two looks, nobody knows whose it was. */
#ifndef FGPROF_PROC_FAMILY_H
#define FGPROF_PROC_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct relative {
    pid_t pid, parent;
    uint64_t start_tick; /* of struct proc_stat */
    uint64_t unseen_ns;  /* when a look would have missed it last */
    bool is_listed;      /* seen among all processes; else its id was asked for */
};

struct relatives {
    struct relative *items;
    size_t count, capacity;
};

/* An id that was given out, and that nobody had so far. */
struct unseen_id {
    pid_t pid;
    uint64_t asked_ns;  /* at first */
    uint64_t unseen_ns; /* as in struct relative */
};

/* Zeroed at first. */
struct family {
    struct relatives members;     /* the processes given, and the descendants found */
    struct relatives seen;        /* by the look at hand */
    struct relatives found;       /* by the last look: the new ones, parents before their children;
                                     those of their threads may be among them */
    struct unseen_id *unseen_ids; /* ascending, but where ids began anew */
    size_t unseen_count, unseen_capacity;
    pid_t given_up_pid;             /* the highest that is not asked for any more */
    pid_t last_pid;                 /* that the kernel had given out; 0: not known */
    bool last_pid_lags;             /* it was seen not to be the last */
    uint64_t listed_ns, listing_ns; /* when all processes were looked at, and how long that took, on
                                       the CPU */
    uint64_t looked_ns, looked_before_ns; /* when the last look began, and the one before */
    uint64_t complete_ns;                 /* when the last look began that misses nobody */
};

/* The process is one whose descendants are wanted. Returns 0 or -ENOMEM. */
int family_add(struct family *family, pid_t pid);

/* Looks for descendants that are new, which are members from then on; never the calling process.
 * Returns 0 or -ENOMEM. */
int family_look(struct family *family, uint64_t now_ns);

void family_free(struct family *family);

/* The last id that was given out, of a line of /proc/loadavg, as
 *   0.75 0.51 0.64 2/523 31337
 * or 0 where it is not one. */
pid_t family_parse_last_pid(const char *line);

#endif
