/* A process that starts reader processes. It is forked before any file of a target is opened, and
 * reads none itself, so that each reader begins with nothing of a target in its memory. */
#ifndef FGPROF_READER_STARTER_H
#define FGPROF_READER_STARTER_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* The name of this process and of readers. */
#define READER_NAME "fgprof-reader"

struct starter {
    pid_t pid;
    int control; /* a socket: when it is closed, or this process ends in whatever way, the starter
                    and its reader end */
    pthread_t thread; /* under AddressSanitizer: a thread takes the place of the processes */
    bool has_thread;
};

/* Returns 0 or a negative errno. */
int starter_fork(struct starter *ret_starter);
/* Returns when it has ended. */
void starter_end(struct starter *starter);

/* Ends the reader before, if there is one, and starts another. Returns the socket through which it
 * is asked, or a negative errno. */
int starter_start(struct starter *starter);

#endif
