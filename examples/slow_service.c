/* A program with known shares of time, after the example of Go's fgprof
 * (github.com/felixge/fgprof): 60 % it waits for a slow request, 30 % it computes, 10 % it naps.
 *
 *     slow-service [SECONDS]     default 10
 *
 * Each round's parts last until their share of the clock has passed, so that the shares are true
 * on a busy machine too. Prints "ready" when it begins. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull

int nap(uint64_t until_ns);
int cpu_intensive_task(uint64_t until_ns);
int slow_network_request(int socket_fd, uint64_t until_ns);

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t until_ns)
{
    struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

/* The slow service at the other end: answers on request. */
static void *serve(void *argument)
{
    int fd = *(int *)argument;
    uint64_t until_ns;
    while (read(fd, &until_ns, sizeof until_ns) == sizeof until_ns) {
        sleep_until(until_ns);
        if (write(fd, &until_ns, sizeof until_ns) != sizeof until_ns)
            break;
    }
    return NULL;
}

int slow_network_request(int socket_fd, uint64_t until_ns)
{
    uint64_t answer = 0;
    if (write(socket_fd, &until_ns, sizeof until_ns) != sizeof until_ns)
        return 0;
    return read(socket_fd, &answer, sizeof answer) == sizeof answer && answer == until_ns;
}

int cpu_intensive_task(uint64_t until_ns)
{
    volatile unsigned work = 0;
    while (now_ns() < until_ns) {
        for (int i = 0; i < 10000; i++)
            work += (unsigned)i;
    }
    return (int)work;
}

int nap(uint64_t until_ns)
{
    sleep_until(until_ns);
    return 0;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 10;
    int sockets[2];
    pthread_t server;
    if (seconds <= 0 || seconds > 600 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) ||
        pthread_create(&server, NULL, serve, &sockets[1]))
        return 1;
    pthread_setname_np(server, "server");
    puts("ready");
    fflush(stdout);
    uint64_t begin_ns = now_ns(), end_ns = begin_ns + (uint64_t)(seconds * 1e9);
    for (uint64_t round_ns = begin_ns; round_ns < end_ns; round_ns += 100 * MS) {
        slow_network_request(sockets[0], round_ns + 60 * MS);
        cpu_intensive_task(round_ns + 90 * MS);
        nap(round_ns + 100 * MS);
    }
    return 0;
}
