#include "target/reaper.h"
#include "base/array.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

/* How long an exec is held up at the most. */
#define PERIOD_NS 20000000

struct reaper {
    pthread_t thread;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t changed;
    bool must_end;
    pid_t *tids;
    size_t count, capacity;
};

/* A tracee's stop is reported by every wait, whatever kind it asks for (wait_task_stopped in the
 * kernel's exit.c), and may be taken by the sampling thread alone: so this looks before it takes.
 */
static bool has_exited(pid_t tid)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) || !info.si_pid)
        return false;
    return info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
}

static void reap(const struct reaper *reaper)
{
    for (size_t i = 0; i < reaper->count; i++) {
        siginfo_t info;
        if (has_exited(reaper->tids[i]))
            waitid(P_PID, (id_t)reaper->tids[i], &info, WEXITED | WNOHANG | __WALL);
    }
}

static void *reaper_main(void *context)
{
    struct reaper *reaper = context;
    prctl(PR_SET_NAME, "fgprof-reaper");
    pthread_mutex_lock(&reaper->lock);
    while (!reaper->must_end) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PERIOD_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&reaper->changed, &reaper->lock, &until);
        reap(reaper);
    }
    pthread_mutex_unlock(&reaper->lock);
    return NULL;
}

int reaper_new(struct reaper **ret_reaper)
{
    struct reaper *reaper = calloc(1, sizeof *reaper);
    sigset_t all, before;
    pthread_condattr_t attributes;
    if (!reaper)
        return -ENOMEM;
    pthread_mutex_init(&reaper->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&reaper->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&reaper->thread, NULL, reaper_main, reaper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err) {
        free(reaper);
        return -err;
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
    free(reaper->tids);
    free(reaper);
}

int reaper_hold(struct reaper *reaper, pid_t tid)
{
    pthread_mutex_lock(&reaper->lock);
    int err = array_reserve((void **)&reaper->tids, &reaper->capacity, reaper->count + 1,
                            sizeof *reaper->tids);
    if (!err)
        reaper->tids[reaper->count++] = tid;
    pthread_mutex_unlock(&reaper->lock);
    return err;
}

void reaper_drop(struct reaper *reaper, pid_t tid)
{
    pthread_mutex_lock(&reaper->lock);
    for (size_t i = 0; i < reaper->count; i++) {
        if (reaper->tids[i] == tid) {
            reaper->tids[i] = reaper->tids[--reaper->count];
            break;
        }
    }
    pthread_mutex_unlock(&reaper->lock);
}
