/* Starting the command that `run` samples, and waiting for its end. */
#include "recorder/recorder.h"
#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The command gets the caller's signal mask, and the default for the two signals that a writer of
 * profiles ignores. */
static int set_signals(posix_spawnattr_t *attributes, const sigset_t *mask)
{
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    int err = posix_spawnattr_setsigmask(attributes, mask);
    if (!err)
        err = posix_spawnattr_setsigdefault(attributes, &defaults);
    if (!err)
        err = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return err;
}

int fgprof_recorder_spawn(fgprof_recorder *recorder, char *const argv[], int stdout_fd)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    pid_t child;
    if (recorder->child)
        return -EEXIST;
    if (posix_spawnattr_init(&attributes))
        return -ENOMEM;
    if (posix_spawn_file_actions_init(&actions)) {
        posix_spawnattr_destroy(&attributes);
        return -ENOMEM;
    }
    /* No handler of the caller's may look for the command before it is known. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = set_signals(&attributes, &before);
    if (!err && stdout_fd >= 0)
        err = posix_spawn_file_actions_adddup2(&actions, stdout_fd, STDOUT_FILENO);
    /* Returns when the exec has succeeded (posix_spawn(3), since glibc 2.24), so that nothing of
     * ours is ever in the child that is sampled. */
    if (!err)
        err = posix_spawnp(&child, argv[0], &actions, &attributes, argv, environ);
    if (!err)
        recorder->child = child;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (err)
        return -err;
    recorder->spawned_ns = monotonic_ns();
    err = fgprof_recorder_attach(recorder, child);
    return err == -ESRCH ? 0 : err; /* it has ended already: a run without samples */
}

/* The target whose end as a child was seen while it was being stopped, or NULL. */
static const struct target *reaped_child(const fgprof_recorder *recorder)
{
    for (size_t i = 0; i < recorder->target_count; i++) {
        const struct target *target = recorder->targets[i];
        if (target->process.pid == recorder->child && target->has_exit_status)
            return target;
    }
    return NULL;
}

pid_t fgprof_recorder_child(const fgprof_recorder *recorder)
{
    return reaped_child(recorder) ? 0 : recorder->child;
}

int fgprof_recorder_wait(fgprof_recorder *recorder, int *ret_status)
{
    if (!recorder->child)
        return -ECHILD;
    const struct target *target = reaped_child(recorder);
    if (target)
        *ret_status = target->exit_status;
    while (!target && waitpid(recorder->child, ret_status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    recorder->child = 0;
    return 0;
}
