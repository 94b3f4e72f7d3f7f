/* One thread in each state that a tool may see or miss. Each is two functions deep, STATE_outer and
 * STATE_inner: a tool has seen the thread if both names are in its output:
 *
 *   running   computes
 *   dozing    sleeps for 20 ms, again and again
 *   asleep    sleeps in one read() from beginning to end
 *   owner     holds a mutex, and sleeps
 *   blocked   waits for that mutex
 *
 * Its answer: {"owner": thread id, "blocked": thread id}. */
#include "target.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DOZE_NS 20000000

/* Keeps a call from being inlined, and from becoming a tail call. */
#define FUNCTION static __attribute__((noipa)) void
#define AFTER_CALL __asm__ volatile("" ::: "memory")

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int owner_tid, blocked_tid;

FUNCTION running_inner(void)
{
    for (volatile unsigned i = 0;; i++) {
    }
}

FUNCTION running_outer(void)
{
    running_inner();
    AFTER_CALL;
}

FUNCTION dozing_inner(void)
{
    for (;;) {
        struct timespec doze = {.tv_nsec = DOZE_NS};
        nanosleep(&doze, NULL);
    }
}

FUNCTION dozing_outer(void)
{
    dozing_inner();
    AFTER_CALL;
}

FUNCTION asleep_inner(void)
{
    int fds[2];
    char byte;
    require(!pipe(fds), "pipe");
    require(read(fds[0], &byte, 1) >= 0, "read");
}

FUNCTION asleep_outer(void)
{
    asleep_inner();
    AFTER_CALL;
}

FUNCTION owner_inner(void)
{
    pthread_mutex_lock(&queue_lock);
    owner_tid = (int)syscall(SYS_gettid);
    for (;;)
        poll(NULL, 0, -1);
}

FUNCTION owner_outer(void)
{
    owner_inner();
    AFTER_CALL;
}

FUNCTION blocked_inner(void)
{
    while (!owner_tid) {
    }
    blocked_tid = (int)syscall(SYS_gettid);
    pthread_mutex_lock(&queue_lock);
    AFTER_CALL;
}

FUNCTION blocked_outer(void)
{
    blocked_inner();
    AFTER_CALL;
}

static const struct role {
    const char *name;
    void (*function)(void);
} roles[] = {
    {"running", running_outer}, {"dozing", dozing_outer},   {"asleep", asleep_outer},
    {"owner", owner_outer},     {"blocked", blocked_outer},
};
enum { COUNT = sizeof roles / sizeof *roles };

static void *run(void *argument)
{
    const struct role *role = argument;
    pthread_setname_np(pthread_self(), role->name);
    role->function();
    return NULL;
}

static void answer(void)
{
    printf("{\"owner\": %d, \"blocked\": %d}", owner_tid, blocked_tid);
}

int main(void)
{
    pthread_t thread;
    for (size_t i = 0; i < COUNT; i++)
        require(!pthread_create(&thread, NULL, run, (void *)&roles[i]), "thread");
    while (!blocked_tid)
        usleep(1000);
    serve(answer);
    return 0;
}
