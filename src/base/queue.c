#include "base/queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ITEMS 256

struct block {
    struct block *_Atomic next; /* set before the block's last item is published */
    atomic_size_t filled;       /* items ready to be taken; only the putting thread adds to it */
    unsigned char items[];
};

struct queue {
    size_t item_bytes;
    struct block *last;   /* used by the putting thread only */
    struct block *first;  /* used by the taking thread only */
    size_t taken;         /* how many items of `first` were taken; used by the taking thread only */
    atomic_size_t length; /* items put and not yet taken */
};

static struct block *new_block(const struct queue *queue)
{
    struct block *block = malloc(sizeof *block + BLOCK_ITEMS * queue->item_bytes);
    if (block) {
        atomic_init(&block->next, NULL);
        atomic_init(&block->filled, 0);
    }
    return block;
}

int queue_new(size_t item_bytes, struct queue **ret_queue)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -ENOMEM;
    queue->item_bytes = item_bytes;
    queue->first = queue->last = new_block(queue);
    if (!queue->first) {
        free(queue);
        return -ENOMEM;
    }
    *ret_queue = queue;
    return 0;
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    for (struct block *block = queue->first, *next; block; block = next) {
        next = atomic_load(&block->next);
        free(block);
    }
    free(queue);
}

int queue_put(struct queue *queue, const void *item)
{
    struct block *last = queue->last;
    size_t filled = atomic_load_explicit(&last->filled, memory_order_relaxed);
    /* The next block is allocated before this one is full, so that the taking thread can move on to
     * it and free this one right after taking its last item. */
    if (filled == BLOCK_ITEMS - 1) {
        struct block *next = new_block(queue);
        if (!next)
            return -ENOMEM;
        atomic_store_explicit(&last->next, next, memory_order_relaxed);
        queue->last = next;
    }
    memcpy(last->items + filled * queue->item_bytes, item, queue->item_bytes);
    atomic_fetch_add_explicit(&queue->length, 1, memory_order_relaxed);
    atomic_store_explicit(&last->filled, filled + 1, memory_order_release);
    return 0;
}

bool queue_take(struct queue *queue, void *ret_item)
{
    struct block *first = queue->first;
    if (queue->taken == atomic_load_explicit(&first->filled, memory_order_acquire))
        return false;
    memcpy(ret_item, first->items + queue->taken * queue->item_bytes, queue->item_bytes);
    if (++queue->taken == BLOCK_ITEMS) {
        queue->first = atomic_load_explicit(&first->next, memory_order_relaxed);
        queue->taken = 0;
        free(first);
    }
    atomic_fetch_sub_explicit(&queue->length, 1, memory_order_release);
    return true;
}

bool queue_is_empty(struct queue *queue)
{
    return atomic_load_explicit(&queue->length, memory_order_acquire) == 0;
}
