/* The process that must act for a wait on a descriptor to end: the one at the other end of a pipe
 * or a socket, or the one that holds a file lock.
 *
 * Only the given processes are searched, so the answer is one of them, except for the holder of a
 * lock. Answers may be old, because results of slow reading are kept: a process's descriptors when
 * it was added and, from the first question that needs them, the file locks and the sockets of a
 * network namespace. */
#ifndef FGPROF_WAIT_PEERS_H
#define FGPROF_WAIT_PEERS_H

#include "wait/file_lock.h"
#include "wait/open_files.h"
#include "wait/socket.h"

#define NAMESPACE_NAME_BYTES 64

struct namespace_sockets {
    char name[NAMESPACE_NAME_BYTES]; /* "net:[4026531840]" */
    struct sockets sockets;
};

/* Starts zeroed. */
struct peers {
    struct open_files files;
    struct file_locks locks;
    bool has_locks;
    struct namespace_sockets *namespaces;
    size_t namespace_count, namespace_capacity;
};

/* Adds a process with the open directory /proc/PID. Returns 0 or -ENOMEM. */
int peers_add_process(struct peers *peers, pid_t process_id, int proc_fd);

/* To be called once all are added, before the first question. */
void peers_finish(struct peers *peers);
void peers_free(struct peers *peers);

/* A wait on a descriptor. */
struct waited_file {
    pid_t process_id;
    int proc_fd; /* /proc/PID of the waiting process */
    int fd;
    enum file_use use;
    const char *link;        /* what /proc/PID/fd says it is */
    bool is_uninterruptible; /* then the file is not read: that might take as long */
};

struct peer_answer {
    struct resource resource;
    pid_t process_id;                /* 0: not known, or not one */
    bool is_known;                   /* else the resource is newer than what is kept */
    char text[SOCKET_TEXT_BYTES];    /* of a socket: what it is, as socket_text; else "" */
    char service[SOCKET_TEXT_BYTES]; /* the same as sockets_service */
};

/* Forget what was read about the processes' descriptors, which are then added again, and about
 * sockets, which are read again at the next question. */
void peers_forget_processes(struct peers *peers);
void peers_forget_sockets(struct peers *peers);

int peers_read_locks(struct peers *peers);

/* Returns 0 or -ENOMEM. */
int peers_find(struct peers *peers, const struct waited_file *file, struct peer_answer *ret_answer);

#endif
