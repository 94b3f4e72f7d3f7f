/* Threads that wait, each for a partner that ends its waits:
 *
 *     partner WAY computes|sleeps thread|process PAIRS [SEED]
 *
 * WAY is how a wait ends: futex, eventfd, pipe, socket, tcp or signal. Then each waiter waits for
 * 60, 250 and 90 us by turns, in a separate function for each. Or WAY is "all": then there are six
 * functions, one for each way, and their durations, 20 us to 1 ms, are drawn from the seed.
 *
 * The partner lets the duration pass, computing or asleep, and ends the wait, again and again. It
 * never waits for the waiter. Its posts are counted, so a late waiter finds its wait already over,
 * and each wait keeps its function. */
#include "durations.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define PAIRS_MAX 32
#define WAITS_MAX FUNCTIONS_MAX
#define KERNEL_SIGSET_BYTES 8 /* the kernel's sigset_t is shorter than libc's */

enum way { BY_FUTEX, BY_EVENTFD, BY_PIPE, BY_SOCKET, BY_TCP, BY_SIGNAL, WAYS };

/* Shared by a waiter and its partner. */
struct line {
    _Atomic uint32_t posts; /* BY_FUTEX: posts not taken yet */
    _Atomic pid_t process, waiter;
    int event_fd;
    int pipe[2], socket[2], tcp[2]; /* the waiter's end, the partner's end */
};

void wait_0(struct account *account);
void wait_1(struct account *account);
void wait_2(struct account *account);
void wait_3(struct account *account);
void wait_4(struct account *account);
void wait_5(struct account *account);

static const char *const way_names[WAYS] = {"futex", "eventfd", "pipe", "socket", "tcp", "signal"};
static struct line *lines;
static enum way ways[WAITS_MAX];
static double durations_us[WAITS_MAX] = {60, 250, 90};
static unsigned wait_count = 3;
static bool computes;

static void await_post(struct line *line)
{
    uint32_t posts;
    while (!(posts = line->posts))
        syscall(SYS_futex, &line->posts, FUTEX_WAIT, 0, NULL, NULL, 0);
    line->posts--;
}

static void post(struct line *line)
{
    line->posts++;
    syscall(SYS_futex, &line->posts, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Uses calls that leave the frame pointer alone, so that a caller is found through it: recv and
 * sigwaitinfo of glibc do not. */
static __attribute__((noinline)) void await_end(struct line *line, enum way way)
{
    uint64_t count;
    char byte;
    sigset_t set;
    switch (way) {
    case BY_FUTEX:
        await_post(line);
        break;
    case BY_EVENTFD:
        require(read(line->event_fd, &count, sizeof count) == sizeof count, "eventfd");
        break;
    case BY_PIPE:
        require(read(line->pipe[0], &byte, 1) == 1, "pipe");
        break;
    case BY_SOCKET:
        require(read(line->socket[0], &byte, 1) == 1, "socket");
        break;
    case BY_TCP:
        require(read(line->tcp[0], &byte, 1) == 1, "tcp");
        break;
    case BY_SIGNAL:
        sigemptyset(&set);
        sigaddset(&set, SIGRTMIN);
        require(syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, KERNEL_SIGSET_BYTES) == SIGRTMIN,
                "sigtimedwait");
        break;
    case WAYS:
        break;
    }
}

static void end_wait(struct line *line, enum way way)
{
    const uint64_t one = 1;
    const char byte = 0;
    switch (way) {
    case BY_FUTEX:
        post(line);
        break;
    case BY_EVENTFD:
        require(write(line->event_fd, &one, sizeof one) == sizeof one, "eventfd");
        break;
    case BY_PIPE:
        require(write(line->pipe[1], &byte, 1) == 1, "pipe");
        break;
    case BY_SOCKET:
        require(send(line->socket[1], &byte, 1, 0) == 1, "socket");
        break;
    case BY_TCP:
        require(send(line->tcp[1], &byte, 1, 0) == 1, "tcp");
        break;
    case BY_SIGNAL:
        require(!syscall(SYS_tgkill, line->process, line->waiter, SIGRTMIN), "tgkill");
        break;
    case WAYS:
        break;
    }
}

__attribute__((noinline)) void wait_0(struct account *account)
{
    await_end(&lines[account->number], ways[0]);
    end_of(account, 0);
}

__attribute__((noinline)) void wait_1(struct account *account)
{
    await_end(&lines[account->number], ways[1]);
    end_of(account, 1);
}

__attribute__((noinline)) void wait_2(struct account *account)
{
    await_end(&lines[account->number], ways[2]);
    end_of(account, 2);
}

__attribute__((noinline)) void wait_3(struct account *account)
{
    await_end(&lines[account->number], ways[3]);
    end_of(account, 3);
}

__attribute__((noinline)) void wait_4(struct account *account)
{
    await_end(&lines[account->number], ways[4]);
    end_of(account, 4);
}

__attribute__((noinline)) void wait_5(struct account *account)
{
    await_end(&lines[account->number], ways[5]);
    end_of(account, 5);
}

static void *run_waiter(void *argument)
{
    static void (*const waits[WAITS_MAX])(struct account *) = {wait_0, wait_1, wait_2,
                                                               wait_3, wait_4, wait_5};
    struct account *account = argument;
    struct line *line = &lines[account->number];
    begin(account);
    line->process = getpid();
    line->waiter = account->tid;
    for (;;) {
        for (unsigned i = 0; i < wait_count; i++)
            waits[i](account);
    }
    return NULL;
}

static void *run_partner(void *argument)
{
    struct line *line = argument;
    prctl(PR_SET_NAME, "partner");
    prctl(PR_SET_TIMERSLACK, 1);
    while (!line->waiter)
        nap(1000);
    for (;;) {
        for (unsigned i = 0; i < wait_count; i++) {
            if (computes)
                compute_us(durations_us[i]);
            else
                nap(durations_us[i]);
            end_wait(line, ways[i]);
        }
    }
    return NULL;
}

static void connect_by_tcp(int fds[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int on = 1;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(listening >= 0 && fds[0] >= 0 &&
                !bind(listening, (struct sockaddr *)&address, sizeof address) &&
                !listen(listening, 1) &&
                !getsockname(listening, (struct sockaddr *)&address, &size) &&
                !connect(fds[0], (struct sockaddr *)&address, sizeof address),
            "tcp");
    fds[1] = accept(listening, NULL, NULL);
    require(fds[1] >= 0 && !setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) &&
                !setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on),
            "tcp");
    close(listening);
}

static void open_line(struct line *line)
{
    line->event_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    require(line->event_fd >= 0 && !pipe2(line->pipe, O_CLOEXEC) &&
                !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line->socket),
            "line");
    connect_by_tcp(line->tcp);
}

/* The partner is a process of its own, which ends with this one. */
static void fork_partner(struct line *line)
{
    pid_t pid = fork();
    require(pid >= 0, "fork");
    if (pid)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    run_partner(line);
}

static void start_partner(struct line *line)
{
    pthread_t thread;
    require(!pthread_create(&thread, NULL, run_partner, line), "thread");
}

static void choose_ways(const char *name, unsigned seed)
{
    if (!strcmp(name, "all")) {
        wait_count = WAYS;
        for (unsigned i = 0; i < WAYS; i++)
            ways[i] = (enum way)i;
        draw_durations(seed, 20, 1000, durations_us, wait_count);
        return;
    }
    for (unsigned i = 0; i < WAYS; i++) {
        if (!strcmp(name, way_names[i])) {
            for (unsigned j = 0; j < wait_count; j++)
                ways[j] = (enum way)i;
            return;
        }
    }
    fprintf(stderr, "no such way: %s\n", name);
    exit(2);
}

/* Blocked before any thread starts, so that all threads have it blocked. */
static void block_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    require(!sigprocmask(SIG_BLOCK, &set, NULL), "sigprocmask");
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: partner WAY computes|sleeps thread|process PAIRS [SEED]\n");
        return 2;
    }
    computes = !strcmp(argv[2], "computes");
    bool forks = !strcmp(argv[3], "process");
    unsigned pairs = number_of(argc, argv, 4, 1);
    require(pairs <= PAIRS_MAX, "pairs");
    choose_ways(argv[1], number_of(argc, argv, 5, 1));
    block_signal();
    learn_speed();
    lines = mmap(NULL, PAIRS_MAX * sizeof *lines, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(lines != MAP_FAILED, "mmap");
    for (unsigned i = 0; i < pairs; i++) {
        open_line(&lines[i]);
        if (forks)
            fork_partner(&lines[i]);
    }
    struct account account = {.thread = "waiter"};
    static const char *const names[] = {"wait_0", "wait_1", "wait_2", "wait_3", "wait_4", "wait_5"};
    for (unsigned i = 0; i < wait_count; i++)
        account.functions[i] = names[i];
    for (unsigned i = 0; i < pairs; i++)
        start(run_waiter, account);
    for (unsigned i = 0; i < pairs && !forks; i++)
        start_partner(&lines[i]);
    serve_accounts();
    return 0;
}
