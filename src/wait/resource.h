/* What a thread waits for, as a value: waits for the same resource have equal values. */
#ifndef FGPROF_WAIT_RESOURCE_H
#define FGPROF_WAIT_RESOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum resource_kind {
    RESOURCE_NOT_KNOWN,
    RESOURCE_FUTEX, /* part of a lock that is not known */
    RESOURCE_MUTEX,
    RESOURCE_RWLOCK,
    RESOURCE_CONDITION, /* a condition variable */
    RESOURCE_SEMAPHORE,
    RESOURCE_BARRIER,
    RESOURCE_ONCE,    /* something that is done once, by another thread */
    RESOURCE_PARKING, /* a thread's own place to wait in until another one wakes it */
    RESOURCE_CHANNEL, /* of Go, like the next */
    RESOURCE_WAIT_GROUP,
    RESOURCE_GIL,     /* Python's global interpreter lock */
    RESOURCE_THREAD,  /* the end of a thread */
    RESOURCE_PROCESS, /* a change of a child process, such as its end */
    RESOURCE_FILE_LOCK,
    RESOURCE_PIPE,
    RESOURCE_FIFO, /* a pipe with a path */
    RESOURCE_UNIX_SOCKET,
    RESOURCE_TCP_SOCKET,
    RESOURCE_SOCKET, /* of another kind */
    RESOURCE_FILE,   /* any other descriptor */
    RESOURCE_POLL,   /* several descriptors, or an unknown one */
    RESOURCE_SLEEP,
    RESOURCE_SIGNAL,
    RESOURCE_SEMAPHORES, /* of System V */
    RESOURCE_MESSAGES,   /* a message queue of System V */
    RESOURCE_CPU,        /* a CPU, by a thread that may run */
    RESOURCE_KIND_COUNT,
};

struct resource {
    enum resource_kind kind;
    pid_t process_id; /* the process in which `key` means something; 0: everywhere */
    uint64_t key;     /* an address, inode number, process id ... */
};

/* How a CPU is named: with the thread or process that had it, or if none did. */
#define CPU_USED_BY "CPU used by "
#define CPU_IDLE "idle CPU"

/* "mutex", "read-write lock", "pipe" ... Static. */
const char *resource_kind_name(enum resource_kind kind);

/* Whether it is a lock in memory, or a part of one: its key is an address. */
bool resource_is_lock(enum resource_kind kind);

/* What /proc/PID/fd/N says a descriptor is, such as "pipe:[123]", "/var/log/x" or
 * "anon_inode:[eventpoll]". Equal paths are assumed to be the same file, even in different mount
 * namespaces; so are anonymous inodes of a process with the same descriptor. */
struct resource resource_of_link(const char *link, pid_t process_id, int fd);

#define RESOURCE_NAME_BYTES 512

/* A name for it, such as "mutex 0x55d0c0", "process 123" or, for a descriptor, its `link` or what a
 * socket is connected to. `link` may be NULL. The name comes from the target and is not escaped. */
void resource_name(const struct resource *resource, const char *link,
                   char ret_name[RESOURCE_NAME_BYTES]);

#endif
