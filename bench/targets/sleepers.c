/* A thread in each call that a stop is known to disturb (signal(7), "Interruption of system calls
 * and library functions by stop signals"), and in some that it does not disturb. Each call would
 * last for an hour: all early returns are counted, and the call is repeated. One more thread works
 * and waits by turns, as servers do, so that some samples catch it on its way into the wait.
 *
 * Its answer: {"CALL": early returns, ...}, null for a call that this kernel does not permit. */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define LONG_S 3600
#define TURN_WORK_NS 200000
#define TURN_WAIT_MS 1

struct call {
    const char *name;
    void (*function)(struct call *call);
    _Atomic uint64_t early;
    atomic_bool is_missing;
};

static const struct timespec an_hour = {.tv_sec = LONG_S};
static int semaphores = -1;

static void in_epoll_wait(struct call *call)
{
    struct epoll_event event;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    for (;; call->early++)
        epoll_wait(fd, &event, 1, LONG_S * 1000);
}

static void in_turns(struct call *call)
{
    struct epoll_event event;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    for (;;) {
        uint64_t begin_ns = now_ns();
        while (now_ns() - begin_ns < TURN_WORK_NS) {
        }
        begin_ns = now_ns();
        int result = epoll_wait(fd, &event, 1, TURN_WAIT_MS);
        call->early += result != 0 || now_ns() - begin_ns < TURN_WAIT_MS * 1000000u;
    }
}

static void in_semtimedop(struct call *call)
{
    struct sembuf wait = {.sem_op = -1};
    for (;; call->early++)
        semtimedop(semaphores, &wait, 1, &an_hour);
}

static void in_sigtimedwait(struct call *call)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR2);
    for (;; call->early++)
        sigtimedwait(&signals, NULL, &an_hour);
}

static void in_io_getevents(struct call *call)
{
    aio_context_t context = 0;
    struct io_event event;
    if (syscall(SYS_io_setup, 1, &context)) {
        call->is_missing = true;
        return;
    }
    for (;; call->early++) {
        struct timespec timeout = an_hour;
        syscall(SYS_io_getevents, context, 1, 1, &event, &timeout);
    }
}

static void in_io_uring_enter(struct call *call)
{
    struct io_uring_params parameters = {0};
    struct __kernel_timespec timeout = {.tv_sec = LONG_S};
    struct io_uring_getevents_arg argument = {.ts = (uint64_t)(uintptr_t)&timeout};
    int ring = (int)syscall(SYS_io_uring_setup, 1, &parameters);
    if (ring < 0) {
        call->is_missing = true;
        return;
    }
    for (;; call->early++) {
        syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                &argument, sizeof argument);
    }
}

/* After a stop, calls on sockets without a timeout are restarted; those on sockets with one are
 * not. */
static void set_timeout(int fd)
{
    struct timeval timeout = {.tv_sec = LONG_S};
    require(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout), "setsockopt");
}

static void in_recv(struct call *call)
{
    int fds[2];
    char byte;
    require(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "socketpair");
    set_timeout(fds[0]);
    for (;; call->early++)
        recv(fds[0], &byte, 1, 0);
}

static void in_accept(struct call *call)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(!bind(fd, (struct sockaddr *)&loopback, sizeof loopback) && !listen(fd, 1), "listen");
    set_timeout(fd);
    for (;; call->early++)
        accept(fd, NULL, NULL);
}

/* Asks for two bytes although there is one: after a stop it returns a short count, without an
 * error. */
static void in_recv_waitall(struct call *call)
{
    int fds[2];
    char bytes[2];
    require(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "socketpair");
    for (;; call->early++) {
        require(send(fds[1], "x", 1, 0) == 1, "send");
        recv(fds[0], bytes, sizeof bytes, MSG_WAITALL);
    }
}

/* Writes more than fits in a pipe: after a stop it returns a short count, without an error. */
static void in_pipe_write(struct call *call)
{
    static char much[1024 * 1024], there[1024 * 1024];
    int fds[2];
    require(!pipe2(fds, O_CLOEXEC), "pipe");
    require(!fcntl(fds[0], F_SETFL, O_NONBLOCK), "fcntl");
    for (;; call->early++) {
        ssize_t written = write(fds[1], much, sizeof much);
        while (written > 0 && read(fds[0], there, sizeof there) > 0) {
        }
    }
}

static void in_poll(struct call *call)
{
    for (;; call->early++)
        poll(NULL, 0, LONG_S * 1000);
}

static void in_nanosleep(struct call *call)
{
    for (;; call->early++)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &an_hour, NULL);
}

static struct call calls[] = {
    {.name = "epoll_wait", .function = in_epoll_wait},
    {.name = "epoll_wait, 1 ms, between 0.2 ms of work", .function = in_turns},
    {.name = "semtimedop", .function = in_semtimedop},
    {.name = "sigtimedwait", .function = in_sigtimedwait},
    {.name = "io_getevents", .function = in_io_getevents},
    {.name = "io_uring_enter", .function = in_io_uring_enter},
    {.name = "recv, socket with a timeout", .function = in_recv},
    {.name = "accept, socket with a timeout", .function = in_accept},
    {.name = "recv with MSG_WAITALL", .function = in_recv_waitall},
    {.name = "write of 1 MiB to a pipe", .function = in_pipe_write},
    {.name = "poll", .function = in_poll},
    {.name = "clock_nanosleep", .function = in_nanosleep},
};
enum { COUNT = sizeof calls / sizeof *calls };

static void *run(void *argument)
{
    struct call *call = argument;
    call->function(call);
    return NULL;
}

static void answer(void)
{
    putchar('{');
    for (size_t i = 0; i < COUNT; i++) {
        printf("%s\"%s\": ", i ? ", " : "", calls[i].name);
        if (calls[i].is_missing)
            printf("null");
        else
            printf("%" PRIu64, calls[i].early);
    }
    putchar('}');
}

int main(void)
{
    sigset_t signals;
    pthread_t thread;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    require(semaphores >= 0, "semget");
    for (size_t i = 0; i < COUNT; i++)
        require(!pthread_create(&thread, NULL, run, &calls[i]), "thread");
    serve(answer);
    semctl(semaphores, 0, IPC_RMID);
    return 0;
}
