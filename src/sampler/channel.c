#include "sampler/channel.h"
#include "base/bell.h"
#include "base/clock.h"
#include "base/queue.h"

#include <errno.h>
#include <stdlib.h>

/* Limit of unread messages; a large tick message takes kilobytes. */
#define UNREAD_MAX 8192
#define AWAIT_NS 1000000

struct channel {
    struct snapshot_pool *snapshots;
    struct queue *messages;
    struct queue *requests;
    struct news_queue news;
    struct bell message_bell, request_bell; /* rung when a queue may have something */
    struct lazy_bell lazy_bell;             /* message_bell, as the sampling thread rings it */
    uint64_t sent;                          /* written by the sampling thread */
    atomic_uint goroutine_changes;          /* messages with such changes, not released yet */
    _Atomic uint64_t done; /* how many of the sent messages the worker has finished */
    atomic_bool is_closed;
    /* The worker's: */
    uint64_t taken, news_taken; /* how many messages it has received from each queue */
    struct message held;        /* the next of the first queue, if others come before it, */
    struct news_message next;   /* and the next of the second queue */
    bool has_held, has_next;
    bool was_news; /* the last message received was news; `next` still holds it */
};

int channel_new(struct channel **ret_channel)
{
    struct channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return -ENOMEM;
    channel->lazy_bell.bell = &channel->message_bell;
    int err = snapshot_pool_new(&channel->snapshots);
    if (!err)
        err = queue_new(sizeof(struct message), &channel->messages);
    if (!err)
        err = queue_new(sizeof(struct request), &channel->requests);
    if (!err)
        err = news_queue_init(&channel->news, &channel->message_bell);
    if (err) {
        channel_free(channel);
        return err;
    }
    *ret_channel = channel;
    return 0;
}

static void give_back(struct snapshot_pool *snapshots, struct snapshot *snapshot)
{
    if (snapshot)
        snapshot_pool_give(snapshots, snapshot, true);
}

void channel_release(struct channel *channel, struct message *message)
{
    switch (message->kind) {
    case MESSAGE_OBSERVATION:
        give_back(channel->snapshots, message->observation.snapshot);
        observation_release(&message->observation);
        break;
    case MESSAGE_WAKE:
        give_back(channel->snapshots, message->wake.waker.snapshot);
        observation_release(&message->wake.waker);
        free(message->wake.seen);
        break;
    case MESSAGE_OBJECT:
        give_back(channel->news.snapshots, message->object.snapshot);
        program_release(message->object.program);
        free(message->object.name);
        break;
    case MESSAGE_OBJECT_COUNTS:
        free(message->object_counts);
        break;
    case MESSAGE_GOROUTINES:
        goroutine_changes_free(message->goroutines.changes);
        program_release(message->goroutines.program);
        atomic_fetch_sub(&channel->goroutine_changes, 1);
        break;
    case MESSAGE_TASKS:
        program_release(message->tasks.program);
        break;
    case MESSAGE_TICK:
        free(message->tick.threads);
        break;
    case MESSAGE_PROGRAM_ENDED:
        program_release(message->program);
        break;
    case MESSAGE_COPY:
    case MESSAGE_MOMENT:
        free(message->state);
        break;
    case MESSAGE_PROCESS:
    case MESSAGE_END:
        break;
    }
}

/* ---- The order of messages ---- */

static bool take_message(struct channel *channel, struct message *ret_message)
{
    if (!channel->has_held && !queue_take(channel->messages, ret_message))
        return false;
    if (channel->has_held)
        *ret_message = channel->held;
    channel->has_held = ret_message->after > channel->news_taken;
    if (channel->has_held) {
        channel->held = *ret_message;
        return false;
    }
    channel->taken++;
    channel->was_news = false;
    return true;
}

static bool take_news(struct channel *channel, struct message *ret_message)
{
    struct news_message *next = &channel->next;
    channel->has_next = channel->has_next || news_queue_take(&channel->news, next);
    if (!channel->has_next || next->after > channel->taken)
        return false;
    channel->has_next = false;
    channel->was_news = true;
    channel->news_taken++;
    switch (next->kind) {
    case NEWS_OBJECT:
        *ret_message = (struct message){.kind = MESSAGE_OBJECT, .object = next->object};
        break;
    case NEWS_PROGRAM_ENDED:
        *ret_message = (struct message){.kind = MESSAGE_PROGRAM_ENDED, .program = next->program};
        break;
    case NEWS_COUNTS:
        *ret_message =
            (struct message){.kind = MESSAGE_OBJECT_COUNTS, .object_counts = next->counts};
        break;
    case NEWS_END:
        *ret_message = (struct message){.kind = MESSAGE_END};
        break;
    }
    return true;
}

/* Takes from both queues in turn. */
static bool take(struct channel *channel, struct message *ret_message)
{
    if (channel->was_news)
        return take_message(channel, ret_message) || take_news(channel, ret_message);
    return take_news(channel, ret_message) || take_message(channel, ret_message);
}

/* ---- The channel ---- */

void channel_free(struct channel *channel)
{
    struct message message;
    struct request request;
    if (!channel)
        return;
    if (channel->has_held)
        channel_release(channel, &channel->held);
    if (channel->has_next)
        news_queue_give_up(&channel->news, &channel->next);
    while (channel->messages && queue_take(channel->messages, &message))
        channel_release(channel, &message);
    while (channel->requests && queue_take(channel->requests, &request))
        stack_areas_free(&request.areas);
    queue_free(channel->messages);
    queue_free(channel->requests);
    news_queue_free(&channel->news);
    snapshot_pool_free(channel->snapshots);
    free(channel);
}

struct snapshot_pool *channel_snapshots(struct channel *channel)
{
    return channel->snapshots;
}

struct news_queue *channel_news(struct channel *channel)
{
    return &channel->news;
}

int channel_send(struct channel *channel, const struct message *message)
{
    int err = queue_put(channel->messages, message);
    if (err)
        return err;
    channel->sent++;
    if (message->kind == MESSAGE_GOROUTINES)
        atomic_fetch_add(&channel->goroutine_changes, 1);
    channel->lazy_bell.unrung++;
    return 0;
}

uint64_t channel_sent(const struct channel *channel)
{
    return channel->sent;
}

unsigned channel_goroutine_changes(const struct channel *channel)
{
    return atomic_load(&channel->goroutine_changes);
}

void channel_hurry(struct channel *channel)
{
    channel->lazy_bell.is_hurried = true;
}

void channel_ring(struct channel *channel)
{
    lazy_bell_ring(&channel->lazy_bell);
}

bool channel_ring_if_due(struct channel *channel, uint64_t now_ns)
{
    return lazy_bell_ring_if_due(&channel->lazy_bell, now_ns);
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
        if (take(channel, ret_message))
            return true;
        bool is_closed = atomic_load(&channel->is_closed) && !atomic_load(&channel->news.is_open);
        if (!may_wait || is_closed)
            return may_wait && take(channel, ret_message);
        bell_wait(&channel->message_bell, heard, UINT64_MAX);
    }
}

void channel_done(struct channel *channel)
{
    if (channel->was_news)
        news_queue_done(&channel->next);
    else
        atomic_fetch_add(&channel->done, 1);
}

int channel_request(struct channel *channel, const struct request *request)
{
    int err = queue_put(channel->requests, request);
    if (!err)
        bell_ring(&channel->request_bell);
    return err;
}
