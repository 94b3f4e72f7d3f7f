/* Two threads that wait for each other: each byte that one sends over a socket, the other sends
 * back. Every round trip is four context switches on one CPU, or two on each of two CPUs, so it
 * shows what a tool adds to a switch.
 *
 * Its answer: {"ns": time, "trips": round trips so far}. */
#include "target.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

static int fds[2];
static _Atomic uint64_t trips;

static void *ping(void *argument)
{
    char byte = 'x';
    (void)argument;
    while (write(fds[0], &byte, 1) == 1 && read(fds[0], &byte, 1) == 1)
        trips++;
    return NULL;
}

static void *pong(void *argument)
{
    char byte;
    (void)argument;
    while (read(fds[1], &byte, 1) == 1 && write(fds[1], &byte, 1) == 1) {
    }
    return NULL;
}

static void answer(void)
{
    printf("{\"ns\": %" PRIu64 ", \"trips\": %" PRIu64 "}", now_ns(), trips);
}

int main(void)
{
    pthread_t thread;
    require(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "socketpair");
    require(!pthread_create(&thread, NULL, pong, NULL), "thread");
    require(!pthread_create(&thread, NULL, ping, NULL), "thread");
    serve(answer);
    return 0;
}
