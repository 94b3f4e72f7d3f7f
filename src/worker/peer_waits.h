/* What threads wait for that is not a lock in memory: a child, the file behind a descriptor, a file
 * lock; and which of the sampled processes must act for the wait to end.
 *
 * What a descriptor is comes with the observation, which proves it. Which other processes have it
 * open is known from a list of the descriptors of all sampled processes, with the sockets of their
 * network namespaces. That list is costly, so it is remade only if a question needs it, and rarely;
 * answers are kept until then. A pipe or a socket that is newer than the list has no known owner
 * until then. */
#ifndef FGPROF_WORKER_PEER_WAITS_H
#define FGPROF_WORKER_PEER_WAITS_H

#include "base/throttle.h"
#include "wait/peers.h"
#include "worker/results.h"
#include "observe/observation.h"

struct peer_answer_row;
struct epoll_row;

struct peer_program {
    struct program *program; /* a reference */
    uint32_t process;        /* its row in the stack table */
};

/* Starts zeroed. */
struct peer_waits {
    struct peer_program *programs; /* those that are sampled now */
    size_t program_count, program_capacity;
    struct peers peers;
    uint64_t program_added_ns; /* CLOCK_MONOTONIC: the last one */
    struct throttle listing, sockets, locks, children;
    uint64_t locks_read; /* how often */
    struct peer_answer_row *answers;
    size_t answer_count, answer_capacity;
    struct index answer_index;
    struct epoll_row *epolls;
    size_t epoll_count, epoll_capacity;
    struct index epoll_index;
    struct {
        uint32_t program;
        uint64_t read_ns; /* 0: never */
        bool is_few;
    } descriptors;     /* whether a program had few of them */
    size_t name_count; /* added to the results' strings: data of the target, so it is limited */
};

/* Begin and end with the sampling of a program. The first returns 0 or -ENOMEM. */
int peer_waits_begin(struct peer_waits *waits, struct program *program, uint32_t process);
void peer_waits_end(struct peer_waits *waits, uint32_t program);
void peer_waits_free(struct peer_waits *waits);

/* The child that a thread waits for, as long as the thread stays asleep. */
struct waited_child {
    pid_t process_id; /* 0: none */
    uint64_t since_ns;
};

struct peer_wait {
    struct counted_wait wait; /* RESOURCE_NOT_KNOWN: nothing is known */
    bool is_pending;          /* its owner may be another one, or known, when it is asked again */
};

/* Finds what the thread of an observation waits for, whose call is not CALL_FUTEX; it has slept
 * since `since_ns` or longer. Returns 0 or -ENOMEM. */
int peer_waits_find(struct peer_waits *waits, struct results *results,
                    const struct observation *observation, uint64_t since_ns,
                    struct waited_child *child, struct peer_wait *ret_wait);

/* The results now have only this many strings. */
void peer_waits_limit_names(struct peer_waits *waits, size_t string_count);

/* Whether a sampled process has a single thread. */
bool peer_waits_is_single(const struct peer_waits *waits, uint32_t process);

#endif
