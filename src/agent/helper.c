/* A helper process does the work for a program that profiles itself, so that nothing of it runs in
 * the program: no signal handler, no thread, no lock.
 *
 * The helper must not be the program's child, because SIGCHLD and wait(2) belong to the program. So
 * a process in between starts it and exits. That process shares the program's memory, so that
 * nothing is copied, and is waited for by its id with __WCLONE, because it exits without a signal
 * (clone(2)). */
#include "agent/helper.h"
#include "base/own_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "fgprof-c"
#define CHILD_STACK_BYTES (64u << 10)
#define FIRST_FREE_FD 3 /* above the standard ones */

extern char **environ;

/* A process has one helper at a time: ptrace allows one tracer. A forked process has none yet. */
static _Atomic pid_t profiled;

/* What the helper is started with. The two processes that do so share our memory. */
struct start {
    char path[PATH_MAX];
    char pid[16];
    const char *words[3]; /* what it is to do; after the last, NULL */
    int channel, output;
    char *stacks; /* of the two */
    volatile pid_t helper;
    volatile int error; /* of execve */
};

/* Signal handlers belong to the program: none may run in a process that shares its memory, so all
 * signals stay blocked until the exec, which keeps ignored signals ignored. */
static void reset_signals(void)
{
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
            action.sa_handler != SIG_IGN)
            signal(number, SIG_DFL);
    }
    /* A tracer that ignores it gets no reports of stops (signal(7)). */
    signal(SIGCHLD, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int become_helper(void *context)
{
    struct start *start = context;
    const char *const argv[] = {PROGRAM,         HELPER_COMMAND,  FGPROF_VERSION,  start->pid,
                                start->words[0], start->words[1], start->words[2], NULL};
    /* Any of the standard descriptors may be closed in the program. */
    int channel = fcntl(start->channel, F_DUPFD, FIRST_FREE_FD);
    int output = fcntl(start->output, F_DUPFD, FIRST_FREE_FD);
    int nowhere = open("/dev/null", O_WRONLY); /* a library does not print */
    if (channel < 0 || output < 0 || dup2(channel, STDIN_FILENO) < 0 ||
        dup2(output, STDOUT_FILENO) < 0 || (nowhere >= 0 && dup2(nowhere, STDERR_FILENO) < 0))
        start->error = errno;
    close_range(FIRST_FREE_FD, ~0u, 0);
    reset_signals();
    if (!start->error) {
        execve(start->path, (char *const *)(uintptr_t)argv, environ);
        start->error = errno;
    }
    _exit(1);
}

static int start_helper(void *context)
{
    struct start *start = context;
    start->helper = clone(become_helper, start->stacks + CHILD_STACK_BYTES,
                          CLONE_VM | CLONE_VFORK | SIGCHLD, start);
    if (start->helper < 0)
        start->error = errno;
    _exit(0);
}

/* Returns 0 or a negative errno. */
static int start_in_between(struct start *start)
{
    sigset_t all, before;
    start->stacks = mmap(NULL, 2 * CHILD_STACK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (start->stacks == MAP_FAILED)
        return -errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child =
        clone(start_helper, start->stacks + 2 * CHILD_STACK_BYTES, CLONE_VM | CLONE_VFORK, start);
    int err = child < 0 ? -errno : -start->error;
    while (child > 0 && waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(start->stacks, 2 * CHILD_STACK_BYTES);
    return err;
}

/* Beside the library, or where PATH says. */
static bool find_program(char path[PATH_MAX])
{
    char own[PATH_MAX];
    bool is_found = own_directory_find(own) &&
                    snprintf(path, PATH_MAX, "%s/" PROGRAM, own) < PATH_MAX &&
                    access(path, X_OK) == 0;
    if (is_found)
        return true;
    for (const char *at = getenv("PATH"); at && *at;) {
        size_t length = strcspn(at, ":");
        int needed = snprintf(path, PATH_MAX, "%.*s/" PROGRAM, (int)length, at);
        if (length && needed < PATH_MAX && access(path, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

static int receive(int channel)
{
    struct helper_message message;
    ssize_t got;
    while ((got = recv(channel, &message, sizeof message, 0)) < 0 && errno == EINTR)
        ;
    return got == sizeof message ? message.error : -ECONNRESET; /* it was killed */
}

/* Whether orphans of this process's children become its own: then the helper does. */
static bool adopts_orphans(void)
{
    int is_subreaper = 0;
    return getpid() == 1 ||
           (prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0) == 0 && is_subreaper);
}

static void dismiss(const struct helper *helper)
{
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    close(helper->channel);
    while (adopts_orphans() && waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Lets the helper trace this process, and waits for its first message. */
static int admit(const struct helper *helper)
{
    char byte = 0;
    prctl(PR_SET_PTRACER, helper->pid, 0, 0, 0); /* for Yama; without it that changes nothing */
    send(helper->channel, &byte, sizeof byte, MSG_NOSIGNAL);
    int err = receive(helper->channel);
    if (err)
        dismiss(helper);
    return err;
}

/* Starts a helper for these words, whose output goes to `fd`. Its first message was 0. */
static int start(int fd, const char *const words[3], struct helper *ret_helper)
{
    int pair[2];
    struct start start = {.output = fd, .words = {words[0], words[1], words[2]}};
    snprintf(start.pid, sizeof start.pid, "%d", (int)getpid());
    if (fcntl(fd, F_GETFD) < 0)
        return -EBADF;
    if (getauxval(AT_SECURE))
        return -EPERM; /* its user has fewer rights, and could choose which program runs */
    if (!find_program(start.path))
        return -ENOENT;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return -errno;
    start.channel = pair[1];
    int err = start_in_between(&start);
    close(pair[1]);
    if (err) {
        close(pair[0]);
        return err;
    }
    *ret_helper = (struct helper){.pid = start.helper, .channel = pair[0]};
    return admit(ret_helper);
}

int helper_begin(int fd, const char *const words[3], struct helper *ret_helper)
{
    int state;
    pid_t process = getpid();
    if (atomic_exchange(&profiled, process) == process)
        return -EBUSY;
    /* The processes that start the helper share this thread's memory: if the thread were cancelled,
     * its cleanup handlers would run in them. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    int err = start(fd, words, ret_helper);
    pthread_setcancelstate(state, NULL);
    if (err)
        atomic_store(&profiled, 0);
    return err;
}

int helper_finish(const struct helper *helper)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    shutdown(helper->channel, SHUT_WR);
    int err = receive(helper->channel);
    dismiss(helper);
    pthread_setcancelstate(state, NULL);
    atomic_store(&profiled, 0);
    return err;
}

void helper_dismiss(const struct helper *helper)
{
    dismiss(helper);
    atomic_store(&profiled, 0);
}
