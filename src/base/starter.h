/* A process that starts helpers: processes without privileges that read untrusted files. It is
 * forked before any file of a target is opened, and reads none itself, so a new helper has nothing
 * of a target in its memory. */
#ifndef FGPROF_BASE_STARTER_H
#define FGPROF_BASE_STARTER_H

#include "base/sandbox.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Names of helpers, and of the processes that start them. */
#define READER_NAME "fgprof-reader"
#define HTTP_NAME "fgprof-http"
#define PUSH_NAME "fgprof-push"

/* Whether a process of this name is a helper, of this profiler or of another one. */
bool is_helper_name(const char *name);

/* What a helper does. */
struct helper_role {
    const char *name;          /* of the process */
    void (*serve)(int socket); /* answers packets until the other end has gone */
    uint64_t memory_bytes_max;
    enum sandbox_use use;
};

struct starter {
    const struct helper_role *role;
    pid_t pid;
    int control; /* a socket: when it is closed, or this process ends for any reason, the starter
                    and its helper end */
    uint64_t start_ns_max; /* how long a start may take */
    uint64_t started;      /* requests so far, each with its number */
    pthread_t thread;      /* under AddressSanitizer: a thread takes the place of the processes */
    bool has_thread;
    int served; /* its socket */
};

/* Returns 0 or a negative errno. */
int starter_fork(struct starter *ret_starter, const struct helper_role *role);
/* Ends it, and returns when it has exited. */
void starter_end(struct starter *starter);

/* Ends the current helper, if any, and starts another. Returns the socket for its requests, or a
 * negative errno. */
int starter_start(struct starter *starter);

#endif
