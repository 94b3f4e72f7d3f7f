/* A queue between two threads: one puts, the other takes, and neither ever waits for the other.
 *
 * Items are copied. They lie in blocks that the putting thread allocates and the taking thread
 * frees, so only memory limits a queue's length: its user must bound it. */
#ifndef FGPROF_BASE_QUEUE_H
#define FGPROF_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

struct queue;

/* A queue of items of `item_bytes` bytes. Returns 0 or -ENOMEM. */
int queue_new(size_t item_bytes, struct queue **ret_queue);

/* Each of the two threads must have ended or be the calling one. Accepts NULL. */
void queue_free(struct queue *queue);

/* Appends a copy of `item`. Returns 0 or -ENOMEM; on -ENOMEM nothing was put. */
int queue_put(struct queue *queue, const void *item);

/* Copies the first item out and removes it. Returns false if there is none. */
bool queue_take(struct queue *queue, void *ret_item);

/* Whether everything that was put has been taken. If true, that is exact for the putting thread. */
bool queue_is_empty(struct queue *queue);

#endif
