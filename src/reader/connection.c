#include "reader/connection.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void connection_drop(struct connection *connection)
{
    if (connection->socket >= 0)
        close(connection->socket);
    connection->socket = -1;
}

/* Something else may have ended it since the last question: that is no module's fault. */
static bool has_ended(const struct connection *connection)
{
    struct pollfd watched = {.fd = connection->socket, .events = POLLIN};
    return poll(&watched, 1, 0) > 0;
}

int connection_begin(struct connection *connection, bool *ret_is_new)
{
    const struct timeval limit = {.tv_sec = connection->limit_ms / 1000 + 1};
    connection->until_ns = monotonic_ns() + connection->limit_ms * (uint64_t)1000000;
    *ret_is_new = connection->socket < 0 || has_ended(connection);
    if (!*ret_is_new)
        return 0;
    connection_drop(connection);
    if (!connection->has_starter)
        return -ECHILD;
    int socket = starter_start(&connection->starter);
    if (socket < 0)
        return socket;
    connection->socket = socket;
    /* It may stop to read. */
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return 0;
}

/* The first one starts at once: later there may be no more files to open for it. */
int connection_open(struct connection *connection, const struct helper_role *role,
                    unsigned limit_ms)
{
    bool is_new;
    *connection = (struct connection){.limit_ms = limit_ms, .socket = -1};
    int err = starter_fork(&connection->starter, role);
    connection->has_starter = !err;
    return err ? err : connection_begin(connection, &is_new);
}

void connection_free(struct connection *connection)
{
    connection_drop(connection);
    if (connection->has_starter)
        starter_end(&connection->starter);
    buffer_free(&connection->packet.body);
    *connection = (struct connection){.socket = -1};
}

const char *connection_why(int err)
{
    switch (err) {
    case -ETIMEDOUT:
        return "reading it takes too long";
    case -E2BIG:
        return "reading it takes too much memory";
    case -EPIPE:
        return "its reader crashed";
    default:
        return "its reader failed";
    }
}
