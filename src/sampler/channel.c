#include "sampler/channel.h"
#include "base/bell.h"
#include "base/clock.h"
#include "base/queue.h"

#include <errno.h>
#include <stdlib.h>

/* Of ticks, a large one of which takes kilobytes. */
#define UNREAD_MAX 8192
#define AWAIT_NS 1000000
/* The worker is woken for this many messages, or for one that is so old. */
#define UNRUNG_MAX 64
#define UNRUNG_NS 100000000

struct channel {
    struct snapshots *snapshots;
    struct queue *messages;
    struct queue *requests;
    struct bell message_bell, request_bell; /* rung when a queue may have something */
    uint64_t sent;                          /* written by the sampling thread */
    _Atomic uint64_t done;                  /* how many of those the worker has finished */
    size_t unrung;                          /* how many of those since the worker was last woken */
    bool is_hurried;                        /* one of them can't wait */
    uint64_t rung_ns;                       /* when the worker was last woken */
    atomic_bool is_closed;
};

int channel_new(struct channel **ret_channel)
{
    struct channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return -ENOMEM;
    int err = snapshots_new(&channel->snapshots);
    if (!err)
        err = queue_new(sizeof(struct message), &channel->messages);
    if (!err)
        err = queue_new(sizeof(struct request), &channel->requests);
    if (err) {
        channel_free(channel);
        return err;
    }
    *ret_channel = channel;
    return 0;
}

static void drop(struct message *message)
{
    if (message->kind == MESSAGE_OBSERVATION)
        observation_release(&message->observation);
    else if (message->kind == MESSAGE_OBJECT) {
        observation_release(&message->object.observation);
        free(message->object.news.name);
    } else if (message->kind == MESSAGE_PROGRAM_ENDED)
        program_release(message->program);
    else if (message->kind == MESSAGE_COPY || message->kind == MESSAGE_MOMENT)
        free(message->state);
    else if (message->kind == MESSAGE_TICK)
        free(message->tick.threads);
}

void channel_free(struct channel *channel)
{
    struct message message;
    struct request request;
    if (!channel)
        return;
    while (channel->messages && queue_take(channel->messages, &message))
        drop(&message);
    while (channel->requests && queue_take(channel->requests, &request))
        stack_areas_free(&request.areas);
    queue_free(channel->messages);
    queue_free(channel->requests);
    snapshots_free(channel->snapshots);
    free(channel);
}

struct snapshots *channel_snapshots(struct channel *channel)
{
    return channel->snapshots;
}

int channel_send(struct channel *channel, const struct message *message)
{
    int err = queue_put(channel->messages, message);
    if (err)
        return err;
    channel->sent++;
    channel->unrung++;
    return 0;
}

void channel_hurry(struct channel *channel)
{
    channel->is_hurried = true;
}

void channel_ring(struct channel *channel)
{
    if (!channel->unrung)
        return;
    channel->unrung = 0;
    channel->is_hurried = false;
    channel->rung_ns = monotonic_ns();
    bell_ring(&channel->message_bell);
}

bool channel_ring_if_due(struct channel *channel, uint64_t now_ns)
{
    bool is_due = channel->is_hurried || channel->unrung >= UNRUNG_MAX ||
                  now_ns >= channel->rung_ns + UNRUNG_NS;
    if (!channel->unrung || !is_due)
        return false;
    channel_ring(channel);
    return true;
}

void channel_close(struct channel *channel)
{
    atomic_store(&channel->is_closed, true);
    bell_ring(&channel->message_bell);
}

bool channel_next_request(struct channel *channel, struct request *ret_request)
{
    return queue_take(channel->requests, ret_request);
}

uint32_t channel_heard(struct channel *channel)
{
    return bell_heard(&channel->request_bell);
}

void channel_await(struct channel *channel, uint32_t heard, uint64_t until_ns)
{
    bell_wait(&channel->request_bell, heard, until_ns);
}

void channel_end_wait(struct channel *channel)
{
    bell_ring(&channel->request_bell);
}

void channel_await_worker(struct channel *channel)
{
    struct bell *bell = &channel->request_bell;
    channel_ring(channel);
    bell_wait(bell, bell_heard(bell), monotonic_ns() + AWAIT_NS);
}

bool channel_is_behind(const struct channel *channel)
{
    return channel->sent - atomic_load(&channel->done) > UNREAD_MAX;
}

bool channel_is_settled(struct channel *channel)
{
    return atomic_load(&channel->done) == channel->sent && queue_is_empty(channel->requests);
}

bool channel_receive(struct channel *channel, bool may_wait, struct message *ret_message)
{
    for (;;) {
        uint32_t heard = bell_heard(&channel->message_bell);
        if (queue_take(channel->messages, ret_message))
            return true;
        if (!may_wait || atomic_load(&channel->is_closed))
            return may_wait && queue_take(channel->messages, ret_message);
        bell_wait(&channel->message_bell, heard, UINT64_MAX);
    }
}

void channel_done(struct channel *channel)
{
    atomic_fetch_add(&channel->done, 1);
}

int channel_request(struct channel *channel, const struct request *request)
{
    int err = queue_put(channel->requests, request);
    if (!err)
        bell_ring(&channel->request_bell);
    return err;
}
