#include "observe/reaper.h"
#include "base/array.h"
#include "base/background_thread.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* The longest delay of an exec once several threads are stopped. */
#define PERIOD_NS 1000000

struct held {
    pid_t tid;
    bool is_abandoned; /* no other thread of ours will collect it */
};

struct reaper {
    pthread_t thread;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    bool must_end;
    bool is_watching; /* threads are held: the reaper checks them from time to time */
    struct held *items;
    size_t count, capacity;
};

/* Collects a thread if it has exited. Returns false if we no longer trace it. Every wait reports a
 * tracee's stop, whatever it asks for (wait_task_stopped in the kernel's exit.c), but only the
 * sampling thread may take a stop, so this first peeks. */
static bool reap(pid_t tid)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL))
        return false;
    if (info.si_pid &&
        (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED))
        return waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | __WALL) != 0;
    return true;
}

static void reap_all(struct reaper *reaper)
{
    for (size_t i = reaper->count; i-- > 0;) {
        struct held *held = &reaper->items[i];
        if (!reap(held->tid) && held->is_abandoned)
            *held = reaper->items[--reaper->count];
    }
}

static void *reaper_main(void *context)
{
    struct reaper *reaper = context;
    prctl(PR_SET_NAME, "fgprof-reaper");
    pthread_mutex_lock(&reaper->lock);
    while (!reaper->must_end) {
        if (!reaper->is_watching) {
            pthread_cond_wait(&reaper->changed, &reaper->lock);
            continue;
        }
        struct timespec until = timespec_of_ns(monotonic_ns() + PERIOD_NS);
        pthread_cond_timedwait(&reaper->changed, &reaper->lock, &until);
        reap_all(reaper);
        reaper->is_watching = reaper->count > 0;
    }
    pthread_mutex_unlock(&reaper->lock);
    return NULL;
}

/* While the sampling thread holds stopped threads, it runs before others (run_first in
 * ptrace_source.c). If it waits for this lock then, the reaper has to run before others, too, until
 * it releases the lock. Kernels without CONFIG_FUTEX_PI do not support that. */
static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    if (pthread_mutex_init(lock, &attributes))
        pthread_mutex_init(lock, NULL);
    pthread_mutexattr_destroy(&attributes);
}

int reaper_new(struct reaper **ret_reaper)
{
    struct reaper *reaper = calloc(1, sizeof *reaper);
    if (!reaper)
        return -ENOMEM;
    init_lock(&reaper->lock);
    condition_init(&reaper->changed);
    int err = background_thread_start(reaper_main, reaper, &reaper->thread);
    if (err) {
        pthread_cond_destroy(&reaper->changed);
        pthread_mutex_destroy(&reaper->lock);
        free(reaper);
        return err;
    }
    *ret_reaper = reaper;
    return 0;
}

void reaper_free(struct reaper *reaper)
{
    if (!reaper)
        return;
    pthread_mutex_lock(&reaper->lock);
    reaper->must_end = true;
    pthread_cond_signal(&reaper->changed);
    pthread_mutex_unlock(&reaper->lock);
    pthread_join(reaper->thread, NULL);
    pthread_cond_destroy(&reaper->changed);
    pthread_mutex_destroy(&reaper->lock);
    free(reaper->items);
    free(reaper);
}

static void watch(struct reaper *reaper)
{
    if (reaper->is_watching)
        return;
    reaper->is_watching = true;
    pthread_cond_signal(&reaper->changed);
}

int reaper_hold(struct reaper *reaper, pid_t tid)
{
    pthread_mutex_lock(&reaper->lock);
    int err =
        array_append(&reaper->items, &reaper->count, &reaper->capacity, (struct held){.tid = tid});
    pthread_mutex_unlock(&reaper->lock);
    return err;
}

void reaper_watch(struct reaper *reaper)
{
    pthread_mutex_lock(&reaper->lock);
    if (reaper->count)
        watch(reaper);
    pthread_mutex_unlock(&reaper->lock);
}

static struct held *find(const struct reaper *reaper, pid_t tid)
{
    for (size_t i = 0; i < reaper->count; i++) {
        if (reaper->items[i].tid == tid)
            return &reaper->items[i];
    }
    return NULL;
}

void reaper_drop(struct reaper *reaper, pid_t tid)
{
    pthread_mutex_lock(&reaper->lock);
    struct held *held = find(reaper, tid);
    if (held)
        *held = reaper->items[--reaper->count];
    pthread_mutex_unlock(&reaper->lock);
}

void reaper_abandon(struct reaper *reaper, pid_t tid)
{
    pthread_mutex_lock(&reaper->lock);
    struct held *held = find(reaper, tid);
    if (held) {
        held->is_abandoned = true;
        watch(reaper);
    }
    pthread_mutex_unlock(&reaper->lock);
}

void reaper_forget_all(struct reaper *reaper)
{
    pthread_mutex_lock(&reaper->lock);
    reaper->count = 0;
    pthread_mutex_unlock(&reaper->lock);
}
