#include "base/starter.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Packets to the starter, and from it. */
enum { START, HELPER };

#define START_NS_MAX 10000000000u
#define FIRST_FD 3

bool is_helper_name(const char *name)
{
    return strcmp(name, READER_NAME) == 0 || strcmp(name, HTTP_NAME) == 0 ||
           strcmp(name, PUSH_NAME) == 0;
}

#ifdef __SANITIZE_ADDRESS__

/* Runs the role in a thread instead of a process: fork(2) may leave the sanitizer's allocator
 * locked in the child if there are other threads, and LeakSanitizer sees what a thread leaks. */
static void *run_thread(void *argument)
{
    struct starter *starter = argument;
    starter->role->serve(starter->served);
    close(starter->served);
    return NULL;
}

int starter_fork(struct starter *ret_starter, const struct helper_role *role)
{
    *ret_starter = (struct starter){.role = role, .control = -1};
    return 0;
}

void starter_end(struct starter *starter)
{
    if (starter->has_thread)
        pthread_join(starter->thread, NULL);
    starter->has_thread = false;
}

int starter_start(struct starter *starter)
{
    int ends[2];
    starter_end(starter);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -errno;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for other threads */
    starter->served = ends[1];
    int err = -pthread_create(&starter->thread, NULL, run_thread, starter);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    starter->has_thread = !err;
    if (!err)
        return ends[0];
    close(ends[0]);
    close(ends[1]);
    return err;
}

#else

/* ---- In the starter ---- */

/* It ends with the starter, whatever it is doing. */
static void run_helper(pid_t starter, const struct helper_role *role, int socket)
{
    sandbox_leave_root(role->use);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == starter && sandbox_enter(role->use, role->memory_bytes_max, UINT64_MAX) == 0)
        role->serve(socket);
}

static void end_helper(pid_t *pid)
{
    if (*pid <= 0)
        return;
    kill(*pid, SIGKILL);
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *pid = 0;
}

/* Sends the number of the request with the socket of a new helper, or why there is none. */
static int start_helper(const struct helper_role *role, int control, uint64_t number, pid_t *pid)
{
    struct buffer answer = {0};
    int ends[2] = {-1, -1};
    pid_t starter = getpid();
    int err = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) ? -errno : 0;
    if (!err && (*pid = fork()) < 0)
        err = -errno;
    if (!err && !*pid) {
        close(control);
        close(ends[0]);
        run_helper(starter, role, ends[1]);
        _exit(0);
    }
    packet_put_number(&answer, number);
    packet_put_number(&answer, (uint64_t)(int64_t)err);
    int sent = packet_send(control, HELPER, &answer, err ? -1 : ends[0]);
    buffer_free(&answer);
    for (int i = 0; i < 2 && ends[i] >= 0; i++)
        close(ends[i]);
    return sent;
}

/* Drops what it inherited from its parent: it joins another process group, so that it gets no
 * signals from the terminal, ignores those that are meant for the profiler but are sent to all
 * processes of a service (systemctl(1), kill and stop), and closes all files, since a pipe reaches
 * its end only when every process has closed it. It stays in the session, because the threads of a
 * session are scheduled as one group (sched(7), autogroup): on busy CPUs a session of its own may
 * wait for seconds while the profiler waits for its answer. */
static int let_go(const char *name, int control)
{
    setpgid(0, 0);
    prctl(PR_SET_NAME, name);
    /* Moved first: where the caller has no standard streams, it has one of their numbers. */
    if (dup2(control, FIRST_FD) < 0)
        return -1;
    close_range(FIRST_FD + 1, ~0u, 0);
    int none = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < FIRST_FD; fd++) {
        if (none < 0 || dup2(none, fd) < 0)
            close(fd);
    }
    if (none > FIRST_FD)
        close(none);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    static const int for_profiler[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < COUNT_OF(for_profiler); i++)
        signal(for_profiler[i], SIG_IGN);
    sigset_t all;
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    return FIRST_FD;
}

static void run_starter(const struct helper_role *role, int control)
{
    struct packet packet = {0};
    pid_t helper = 0;
    int err = control < 0;
    while (!err && packet_receive(control, 0, &packet) == 0) {
        struct bytes request = packet_bytes(&packet);
        end_helper(&helper);
        err = start_helper(role, control, packet_number(&request), &helper);
    }
    buffer_free(&packet.body);
}

/* ---- In the process that uses it ---- */

int starter_fork(struct starter *ret_starter, const struct helper_role *role)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -errno;
    pid_t pid = fork();
    if (!pid) {
        run_starter(role, let_go(role->name, ends[1]));
        _exit(0);
    }
    int err = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (err)
        close(ends[0]);
    else
        *ret_starter = (struct starter){
            .role = role, .pid = pid, .control = ends[0], .start_ns_max = START_NS_MAX};
    return err;
}

/* Nothing is lost if it is killed, and it can't hold us up. */
void starter_end(struct starter *starter)
{
    close(starter->control);
    kill(starter->pid, SIGKILL);
    while (waitpid(starter->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static int ask(struct starter *starter)
{
    struct buffer body = {0};
    packet_put_number(&body, ++starter->started);
    int err = packet_send(starter->control, START, &body, -1);
    buffer_free(&body);
    return err;
}

/* The answer to a request that was given up may still come: its helper has been replaced. */
static int receive_socket(struct starter *starter, struct packet *packet)
{
    uint64_t until_ns = monotonic_ns() + starter->start_ns_max;
    int err;
    while (!(err = packet_receive(starter->control, until_ns, packet))) {
        struct bytes answer = packet_bytes(packet);
        if (packet_number(&answer) == starter->started) {
            err = (int)packet_number(&answer);
            return !err && packet->fd < 0 ? -EPROTO : err;
        }
        if (packet->fd >= 0)
            close(packet->fd);
    }
    return err;
}

int starter_start(struct starter *starter)
{
    struct packet packet = {0};
    int err = ask(starter);
    if (!err)
        err = receive_socket(starter, &packet);
    buffer_free(&packet.body);
    return err ? err : packet.fd;
}

#endif
