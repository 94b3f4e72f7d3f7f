/* A queue between two threads: one puts, the other takes, and neither ever waits for the other.
 *
 * Items are copied. They lie in blocks that the putting thread allocates and the taking thread
 * frees, so a queue is as long as memory allows: its user bounds what it puts. */
#ifndef FGPROF_BASE_QUEUE_H
#define FGPROF_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

struct queue;

/* A queue of items of `item_bytes` bytes. Returns 0 or -ENOMEM. */
int queue_new(size_t item_bytes, struct queue **ret_queue);

/* Both threads must have ended, or be the calling one. Takes NULL. */
void queue_free(struct queue *queue);

/* Appends a copy of `item`. Returns 0, or -ENOMEM and then nothing was put. */
int queue_put(struct queue *queue, const void *item);

/* Copies the first item out and removes it. Returns false if there is none. */
bool queue_take(struct queue *queue, void *ret_item);

/* Whether everything that was put has been taken. Exact for the putting thread if it is true. */
bool queue_is_empty(struct queue *queue);

#endif
