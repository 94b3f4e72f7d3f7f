/* Sends what the spool has for one server, in a thread of its own, so that a slow server delays
 * neither the sampling nor another server. */
#ifndef FGPROF_CLI_PUSH_SENDER_H
#define FGPROF_CLI_PUSH_SENDER_H

#include "cli/push/spool.h"

#include <stdatomic.h>

struct sender {
    struct spool *spool;
    size_t target;
    pthread_t thread;
    atomic_uint_least64_t deadline_ns; /* CLOCK_MONOTONIC: the end of all */
    uint64_t first_wait_ns;            /* after a failure; twice that after the next, */
    uint64_t wait_max_ns;              /* but no longer than this */
    uint64_t wait_ns;
    bool has_said_failure, has_said_refusal, has_said_partial;
};

/* A request comes in every `every_ns`. Returns 0 or a negative errno. */
int sender_start(struct sender *sender, struct spool *spool, size_t target, uint64_t every_ns);

/* Waits a while for what is left to be sent. Call spool_end before. */
void sender_stop(struct sender *sender, uint64_t deadline_ns);

#endif
