#include "objects/news_queue.h"
#include "base/queue.h"

#include <stdlib.h>

int news_queue_init(struct news_queue *queue, struct bell *bell)
{
    *queue = (struct news_queue){.bell = {.bell = bell}};
    int err = snapshot_pool_new(&queue->snapshots);
    return err ? err : queue_new(sizeof(struct news_message), &queue->messages);
}

void news_queue_give_up(struct news_queue *queue, const struct news_message *message)
{
    if (message->kind == NEWS_OBJECT) {
        if (message->object.snapshot)
            snapshot_pool_give(queue->snapshots, message->object.snapshot, false);
        program_release(message->object.program);
        free(message->object.name);
    } else if (message->kind == NEWS_PROGRAM_ENDED) {
        program_release(message->program);
    } else if (message->kind == NEWS_COUNTS) {
        free(message->counts);
    }
}

void news_queue_free(struct news_queue *queue)
{
    struct news_message message;
    while (queue->messages && queue_take(queue->messages, &message))
        news_queue_give_up(queue, &message);
    queue_free(queue->messages);
    snapshot_pool_free(queue->snapshots);
}

bool news_queue_has_room(const atomic_size_t *queued, size_t stack_bytes, size_t shares)
{
    size_t used = atomic_load(queued);
    return !used || used + sizeof(struct news_message) + stack_bytes <= NEWS_BYTES_MAX / shares;
}

int news_queue_put(struct news_queue *queue, const struct news_message *message)
{
    struct news_message sized = *message;
    sized.bytes = sizeof sized;
    if (sized.kind == NEWS_OBJECT && sized.object.snapshot)
        sized.bytes += sized.object.snapshot->stack.capacity;
    if (sized.queued)
        atomic_fetch_add(sized.queued, sized.bytes);
    int err = queue_put(queue->messages, &sized);
    if (err) {
        news_queue_done(&sized);
        news_queue_give_up(queue, &sized);
        return err;
    }
    queue->sent++;
    queue->bell.unrung++;
    return 0;
}

void news_queue_close(struct news_queue *queue)
{
    atomic_store(&queue->is_open, false);
    bell_ring(queue->bell.bell);
}

bool news_queue_take(struct news_queue *queue, struct news_message *ret_message)
{
    return queue_take(queue->messages, ret_message);
}

void news_queue_done(const struct news_message *message)
{
    if (message->queued)
        atomic_fetch_sub(message->queued, message->bytes);
}
