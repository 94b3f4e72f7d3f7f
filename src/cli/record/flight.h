/* A flight recorder next to a session, whose recorder keeps the last seconds: writes them to a file
 * on SIGUSR1 and when triggers fire. The triggers are judged once a second, in a separate thread.
 */
#ifndef FGPROF_CLI_RECORD_FLIGHT_H
#define FGPROF_CLI_RECORD_FLIGHT_H

#include "cli/record/files.h"
#include "cli/record/judge.h"
#include "cli/serve/session.h"

struct flight {
    const struct cli_options *options;
    struct session *session;
    int stop_fd; /* an eventfd: readable once it is to stop */
    pthread_t polling, waiting;

    pthread_mutex_t writing; /* protects: */
    struct files files;

    pthread_mutex_t judging; /* protects what follows; `writing` may be taken under it */
    struct judge *judges;    /* one for each trigger */
    unsigned long number;    /* of the recorder that was last seen: see struct session */
    bool has_ended;          /* that one */
    uint64_t polled_ns;      /* CLOCK_MONOTONIC: when that was */
    fgprof_moment *polled; /* the last poll's, from which the next rates are computed; NULL: none */
    struct evidence rates; /* of the last poll */
    int command_stop_fd;   /* a command ends once this is readable */
    uint64_t not_before_ns; /* CLOCK_MONOTONIC: when a trigger may fire again */
    char *pending;          /* why a file will be written; NULL: none will */
    uint64_t due_ns;        /* CLOCK_MONOTONIC: when */
};

/* Starts it. Call this before there are other threads, and before session_run: it blocks SIGUSR1.
 * Returns 0 or a negative errno. */
int flight_start(struct flight *flight, const struct cli_options *options, struct session *session);

/* Ends, and returns how many files were written. */
size_t flight_stop(struct flight *flight);

#endif
