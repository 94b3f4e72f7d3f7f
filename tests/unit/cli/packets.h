/* A socket pair for sending packets, and the last packet that arrived. */
#ifndef FGPROF_TESTS_CLI_PACKETS_H
#define FGPROF_TESTS_CLI_PACKETS_H

#include "unit.h"
#include "base/clock.h"
#include "base/packet.h"

#include <sys/socket.h>

static int ends[2];
static struct packet packet;

static inline int set_up(void **state)
{
    (void)state;
    packet = (struct packet){.fd = -1};
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

static inline int tear_down(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    if (packet.fd >= 0)
        close(packet.fd);
    buffer_free(&packet.body);
    return 0;
}

static inline void receive(void)
{
    assert_int_equal(packet_receive(ends[1], monotonic_ns() + 5000000000u, &packet), 0);
}

#endif
