/* Requests that wait to be sent, oldest first, in files of a directory, so that they survive a
 * restart. Those that can't be written are kept in memory, up to a bound.
 *
 * Several profilers may be given the same directory. Each locks a subdirectory of its own, "0", "1"
 * and so on, and takes over the requests in those that nobody has locked. */
#ifndef FGPROF_CLI_PUSH_SPOOL_H
#define FGPROF_CLI_PUSH_SPOOL_H

#include "cli/options/push.h"
#include "cli/push/body.h"

#include <pthread.h>

struct spool_entry {
    struct spool_entry *next; /* younger */
    char name[64];            /* of the file: later ones come after it */
    bool is_in_memory;        /* there is no file */
    size_t target;            /* by its number in the options */
    uint64_t bytes;           /* that it takes */
    unsigned failures;        /* answers of the server that it has failed */
    unsigned attempts;        /* in this run, after which it was kept */
    bool is_taken;            /* it is being sent */
    struct body body;         /* in memory, or while it is being sent */
};

/* What became of the requests to a server. */
struct spool_counts {
    uint64_t sent, retries;
    uint64_t refused; /* dropped: the server does not want them */
    uint64_t crowded; /* dropped: the spool was full */
    uint64_t lost;    /* dropped: they could not be made, kept or read again */
};

struct spool {
    const struct push_options *options;
    char *targets[PUSH_TARGETS_MAX]; /* as files name them, with whose account it is */
    int directory_fd, lock_fd;
    char path[4096];
    uint64_t bytes_max;
    pthread_mutex_t lock; /* protects what follows */
    pthread_cond_t changed;
    struct spool_entry *oldest, *youngest;
    uint64_t bytes, bytes_in_memory;
    size_t count;
    uint64_t number; /* of the next file */
    struct spool_counts counts[PUSH_TARGETS_MAX];
    bool has_said_full, has_said_unwritable, has_said_too_large;
    bool is_ending;
};

/* Opens the directory and lists its requests. On failure, prints the reason and returns false. */
bool spool_open(struct spool *spool, const struct push_options *options);
void spool_close(struct spool *spool);

/* Adds a request and takes over its body. Drops the oldest ones if there is no room, but only this
 * one if it is larger than the whole spool. */
void spool_add(struct spool *spool, size_t target, struct body *body);

/* Waits for a request to a server, takes it, and reads it: the oldest, but each ten attempts put it
 * after the others. NULL: there is none, and there will be no more. */
struct spool_entry *spool_take(struct spool *spool, size_t target);

enum spool_fate { SPOOL_SENT, SPOOL_REFUSED, SPOOL_KEPT };

/* The result of a taken request; SPOOL_KEPT: it must be sent again. */
void spool_settle(struct spool *spool, struct spool_entry *entry, enum spool_fate fate);

/* Waits this long, or until the end. Returns whether the end has come. */
bool spool_wait(struct spool *spool, uint64_t wait_ns);

/* Lets all waits end. */
void spool_end(struct spool *spool);

void spool_count_lost(struct spool *spool, size_t target);

#endif
