/* What is read from the target about a call that a thread waits in, while it waits. */
#ifndef FGPROF_WAIT_WAIT_LIST_H
#define FGPROF_WAIT_WAIT_LIST_H

#include "wait/lock.h"
#include "wait/resource.h"
#include "observe/observation.h"
#include "proc/activity.h"
#include "proc/process.h"
#include "proc/procfs.h"
#include "proc/program.h"

#include <sys/types.h>

/* One thread of a dump. */
struct wait_facts {
    /* A reference, until wait_list_finish; NULL: not known, and nothing more can be read of the
     * thread. */
    struct program *program;
    pid_t process_id, tid;
    pid_t inner_tid; /* its id within its own PID namespace (pid_namespaces(7)); 0: not known */
    enum evidence evidence; /* how its stack was taken; EVIDENCE_GONE: not known */
    bool has_arguments;
    long syscall_number; /* -1: none */
    uint64_t arguments[6];
    struct activity activity; /* when its stack was taken */
    bool is_uninterruptible;
    struct lock gil; /* RESOURCE_GIL: what it waited for when its stack was taken, whether or not it
                        has moved since, because such waits are short */
    /* Read later: */
    struct call_target target;
    struct call_memory memory;
    bool has_fd;
    int fd;
    char *file;               /* what the descriptor is, like "pipe:[123]"; NULL: not known */
    uint64_t sleep_ns;        /* how long it asked to sleep; 0: not known */
    int polled_fd;            /* the only one that it waits for through the epoll descriptor `fd` */
    char *polled_file;        /* what that is; NULL: there is none, or not known */
    struct resource resource; /* of a call that is no CALL_FUTEX */
    pid_t owner_process;      /* that must act for that wait to end; 0: not known, or not one */
    char owner_name[THREAD_NAME_BYTES];
    bool has_gone_on; /* it has moved since this was read */
};

/* The threads that a process had when the dump was finished. */
struct wait_process {
    pid_t process_id;
    struct thread_list threads;
};

struct wait_list {
    struct wait_facts *items;
    size_t count, capacity;
    size_t read_count;              /* the first items, of which all has been read */
    struct wait_process *processes; /* from wait_list_finish on */
    size_t process_count, process_capacity;
};

/* Adds a copy of `facts`, with a reference of its own. Returns 0 or -ENOMEM. */
int wait_list_add(struct wait_list *list, const struct wait_facts *facts);
void wait_list_free(struct wait_list *list);

/* Reads the memory at which the arguments of items added since the last call point. If a thread has
 * moved since its stack was taken, discards that. Returns 0 or -ENOMEM. */
int wait_list_read(struct wait_list *list);

/* Reads the rest, orders all items by process and thread, and finds out which threads have moved:
 * all others were still waiting when the last item had been read. Closes everything that was open.
 * Returns 0 or -ENOMEM. */
int wait_list_finish(struct wait_list *list);

/* After wait_list_finish: whether the process had a thread with this id. True if that is not
 * known. */
bool wait_list_has_thread(const struct wait_list *list, pid_t process_id, pid_t tid);

#endif
