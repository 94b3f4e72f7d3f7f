/* What is read of the target about a call that a thread waits in, while it waits. */
#ifndef FGPROF_WAIT_FACTS_H
#define FGPROF_WAIT_FACTS_H

#include "wait/call.h"
#include "wait/lock.h"
#include "proc/activity.h"

#include <sys/types.h>

/* One thread of a dump. */
struct wait_facts {
    pid_t process_id, tid;
    pid_t inner_tid; /* its id as the process itself has it (pid_namespaces(7)); 0: not known */
    int proc_fd;     /* /proc/PID of the process: open as long as its target is */
    bool has_arguments;
    long syscall_number; /* -1: none */
    uint64_t arguments[6];
    struct activity activity; /* when its stack was taken */
    /* Read later: */
    struct call_target target;
    struct lock_words lock;
    bool has_fd;
    int fd;
    char *file;        /* what the descriptor is, as "pipe:[123]"; NULL: not known */
    uint64_t sleep_ns; /* how long it asked to sleep; 0: not known */
    bool has_gone_on;  /* it has moved since that was read */
};

struct wait_list {
    struct wait_facts *items;
    size_t count, capacity;
    size_t read_count; /* the first ones, of which all has been read */
};

/* Adds a copy. Returns 0 or -ENOMEM. */
int wait_list_add(struct wait_list *list, const struct wait_facts *facts);
void wait_list_free(struct wait_list *list);

/* Reads what the arguments of those that were added since the last call point at. Of a thread that
 * has moved since its stack was taken, nothing is left. Returns 0 or -ENOMEM. */
int wait_list_read(struct wait_list *list);

/* Reads the rest, orders all by process and thread, and sees who has gone on: all others still
 * waited when the last had been read. Returns 0 or -ENOMEM. */
int wait_list_finish(struct wait_list *list);

#endif
