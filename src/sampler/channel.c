#include "sampler/channel.h"
#include "base/queue.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Of ticks, a large one of which takes kilobytes. */
#define UNREAD_MAX 8192

struct channel {
    struct snapshots *snapshots;
    struct queue *messages;
    struct queue *requests;
    int message_fd; /* eventfds: readable when a queue may have something */
    int request_fd;
    uint64_t sent;         /* written by the sampling thread */
    _Atomic uint64_t done; /* how many of those the worker has finished */
    bool has_unrung;       /* messages were sent since the worker was last woken */
    atomic_bool is_closed;
};

int channel_new(struct channel **ret_channel)
{
    struct channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        return -ENOMEM;
    channel->message_fd = channel->request_fd = -1;
    int err = snapshots_new(&channel->snapshots);
    if (!err)
        err = queue_new(sizeof(struct message), &channel->messages);
    if (!err)
        err = queue_new(sizeof(struct request), &channel->requests);
    if (!err && (channel->message_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        err = -errno;
    if (!err && (channel->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        err = -errno;
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
    else if (message->kind == MESSAGE_PROGRAM_ENDED)
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
    if (channel->message_fd >= 0)
        close(channel->message_fd);
    if (channel->request_fd >= 0)
        close(channel->request_fd);
    free(channel);
}

struct snapshots *channel_snapshots(struct channel *channel)
{
    return channel->snapshots;
}

static void ring(int fd)
{
    const uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);
    (void)written; /* full: it is readable already */
}

static void hush(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);
    (void)got; /* nothing read: it was not readable */
}

int channel_send(struct channel *channel, const struct message *message)
{
    int err = queue_put(channel->messages, message);
    if (err)
        return err;
    channel->sent++;
    channel->has_unrung = true;
    return 0;
}

void channel_ring(struct channel *channel)
{
    if (channel->has_unrung)
        ring(channel->message_fd);
    channel->has_unrung = false;
}

void channel_close(struct channel *channel)
{
    atomic_store(&channel->is_closed, true);
    ring(channel->message_fd);
}

bool channel_next_request(struct channel *channel, struct request *ret_request)
{
    return queue_take(channel->requests, ret_request);
}

int channel_request_fd(const struct channel *channel)
{
    return channel->request_fd;
}

void channel_hush(struct channel *channel)
{
    hush(channel->request_fd);
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
    while (!queue_take(channel->messages, ret_message)) {
        if (!may_wait || atomic_load(&channel->is_closed))
            return may_wait && queue_take(channel->messages, ret_message);
        struct pollfd file = {.fd = channel->message_fd, .events = POLLIN};
        poll(&file, 1, -1);
        /* Before looking at the queue again: a message sent after that rings again. */
        hush(channel->message_fd);
    }
    return true;
}

void channel_done(struct channel *channel)
{
    atomic_fetch_add(&channel->done, 1);
}

int channel_request(struct channel *channel, const struct request *request)
{
    int err = queue_put(channel->requests, request);
    if (!err)
        ring(channel->request_fd);
    return err;
}
