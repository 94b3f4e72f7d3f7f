/* Finds the descendants of processes as they are born.
 *
 * The kernel hands out ids in ascending order and reports the last one, so processes born since the
 * last look have ids between the two. The parent of each of these ids is looked up, which costs the
 * same however many threads a parent has. An id is handed out before its process becomes visible
 * (copy_process in the kernel's fork.c), on a busy machine long before, so an id without a process
 * is looked up again for some time. /proc/PID/task/TID/children would need a file per thread, and
 * omits children while others exit (proc_tid_children(5)). All processes are listed from time to
 * time in case the last id is unreliable: lxcfs shows a container an old one.
 *
 * If a process is born and loses its parent between two looks, its ancestry is unknown. */
#ifndef FGPROF_PROC_DESCENDANTS_H
#define FGPROF_PROC_DESCENDANTS_H

#include "base/index.h"
#include "base/throttle.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct relative {
    pid_t pid, parent;
    uint64_t start_tick; /* as in struct proc_stat */
    uint64_t unseen_ns;  /* start of the last look that would have found it, but did not */
    bool is_listed;      /* found in the list of all processes, not by asking for its id */
    bool is_there;       /* for a member: the current look saw it */
};

struct relatives {
    struct relative *items;
    size_t count, capacity;
};

/* An id that was handed out and has had no process so far. */
struct unseen_id {
    pid_t pid;
    uint64_t asked_ns;  /* when it was first asked for */
    uint64_t unseen_ns; /* as in struct relative */
};

/* Starts zeroed. */
struct descendants {
    struct relatives members;     /* the processes given, and the descendants found */
    struct index by_pid;          /* the members */
    struct relatives seen;        /* what the current look saw */
    struct relatives found;       /* new in the last look, parents before their children; may
                                     include their threads */
    struct unseen_id *unseen_ids; /* ascending, except where ids started over */
    size_t unseen_count, unseen_capacity;
    pid_t given_up_pid;      /* the highest id that is no longer asked for */
    pid_t last_pid;          /* the last id that the kernel had handed out; 0: unknown */
    bool last_pid_lags;      /* it was seen not to be the last */
    struct throttle listing; /* the last complete one of all processes; its cost is CPU time */
    uint64_t looked_ns, looked_before_ns; /* when the last look began, and the one before */
    uint64_t complete_ns;                 /* start of the last look that missed no process */
};

/* Adds a process whose descendants are wanted. Returns 0 or -ENOMEM. */
int descendants_add(struct descendants *descendants, pid_t pid);

/* Looks for new descendants, which become members; never adds the calling process. Returns 0 or
 * -ENOMEM. */
int descendants_look(struct descendants *descendants, uint64_t now_ns);

/* A step of descendants_look: drops members that were not seen, if `is_complete`, and adds the seen
 * processes that descend from a member. Returns 0 or -ENOMEM. */
int descendants_relate(struct descendants *descendants, bool is_complete);

void descendants_free(struct descendants *descendants);

/* The last id that was handed out, from a line of /proc/loadavg such as
 *   0.75 0.51 0.64 2/523 31337
 * or 0 if it is not such a line. */
pid_t descendants_parse_last_pid(const char *line);

#endif
