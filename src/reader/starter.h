/* A process that starts reader processes. It is forked before any file of a target is opened, and
 * reads none itself, so that each reader begins with nothing of a target in its memory. */
#ifndef FGPROF_READER_STARTER_H
#define FGPROF_READER_STARTER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The name of this process and of readers. */
#define READER_NAME "fgprof-reader"

/* What a reader does. */
struct reader_role {
    void (*serve)(int socket); /* answers packets until the other end has gone */
    uint64_t memory_bytes_max;
};

struct starter {
    const struct reader_role *role;
    pid_t pid;
    int control; /* a socket: when it is closed, or this process ends in whatever way, the starter
                    and its reader end */
    pthread_t thread; /* under AddressSanitizer: a thread takes the place of the processes */
    bool has_thread;
    int served; /* its socket */
};

/* Returns 0 or a negative errno. */
int starter_fork(struct starter *ret_starter, const struct reader_role *role);
/* Returns when it has ended. */
void starter_end(struct starter *starter);

/* Ends the reader before, if there is one, and starts another. Returns the socket through which it
 * is asked, or a negative errno. */
int starter_start(struct starter *starter);

#endif
