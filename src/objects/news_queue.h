/* The queue from the collector to the worker, with the snapshots that belong to its messages.
 *
 * It is bounded in bytes, with the same share for each process. Records that do not fit stay in the
 * ring of the kernel or of the program; if that is full, they are counted as lost. */
#ifndef FGPROF_OBJECTS_NEWS_QUEUE_H
#define FGPROF_OBJECTS_NEWS_QUEUE_H

#include "base/bell.h"
#include "objects/source.h"

#include <stdatomic.h>

#define NEWS_BYTES_MAX (8u << 20) /* of all that is in the queue, with its snapshots */

enum news_kind {
    NEWS_OBJECT,        /* an object was made, or is gone */
    NEWS_PROGRAM_ENDED, /* no more messages about the program, here or from the sampler */
    NEWS_COUNTS,        /* what all sources know now */
    NEWS_END,           /* nothing follows */
};

struct news_message {
    enum news_kind kind;
    uint64_t after;        /* how many of the sampling thread's messages come before it */
    atomic_size_t *queued; /* how much of its process's share is in use; NULL: no process's */
    size_t bytes;          /* how much of that this message uses */
    union {
        struct object_news object;    /* the receiver owns its name, snapshot and program */
        struct program *program;      /* a reference, owned by the receiver */
        struct object_counts *counts; /* OBJECT_KIND_COUNT of them, freed by the receiver */
    };
};

struct news_queue {
    struct queue *messages;
    struct snapshot_pool *snapshots; /* the collector takes them, and the worker gives them back */
    struct lazy_bell bell;           /* the worker's */
    uint64_t sent;                   /* how many messages were put */
    atomic_bool is_open; /* there is a collector, which will send NEWS_END or close the queue */
};

/* `bell` is rung for messages. Returns 0 or -ENOMEM; the queue must be freed in either case. */
int news_queue_init(struct news_queue *queue, struct bell *bell);
/* Call it after both threads have ended. Drops messages that were not taken. */
void news_queue_free(struct news_queue *queue);

/* For the collector: whether a process that uses `queued` bytes of its share, one of `shares` equal
 * shares, has room for a message with this much stack. A process that uses nothing always has
 * room. */
bool news_queue_has_room(const atomic_size_t *queued, size_t stack_bytes, size_t shares);
/* Takes ownership of the message's contents, even on error. Returns 0 or -ENOMEM. */
int news_queue_put(struct news_queue *queue, const struct news_message *message);
void news_queue_close(struct news_queue *queue);

/* For the worker: takes the next message. Returns false if there is none. */
bool news_queue_take(struct news_queue *queue, struct news_message *ret_message);
/* The worker has finished the message that it took last. */
void news_queue_done(const struct news_message *message);
/* The same after both threads have ended: releases what came with the message. */
void news_queue_give_up(struct news_queue *queue, const struct news_message *message);

#endif
