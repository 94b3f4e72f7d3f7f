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
    if (atomic_load(&recorder->child))
        return -EEXIST;
    if (posix_spawnattr_init(&attributes))
        return -ENOMEM;
    if (posix_spawn_file_actions_init(&actions)) {
        posix_spawnattr_destroy(&attributes);
        return -ENOMEM;
    }
    /* No handler of the caller may look for the command before it is known. */
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
        atomic_store(&recorder->child, child);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (err)
        return -err;
    recorder->spawned_ns = monotonic_ns();
    err = fgprof_recorder_attach(recorder, child);
    return err == -ESRCH ? 0 : err; /* it has ended already: a run without samples */
}

pid_t fgprof_recorder_child(const fgprof_recorder *recorder)
{
    bool has_end = atomic_load(&recorder->sampler.command.has_end);
    return has_end ? 0 : atomic_load(&recorder->child);
}

int fgprof_recorder_wait(fgprof_recorder *recorder, int *ret_status)
{
    const struct command *command = &recorder->sampler.command;
    pid_t child = atomic_load(&recorder->child);
    if (!child)
        return -ECHILD;
    bool has_end = atomic_load(&command->has_end);
    if (has_end)
        *ret_status = command->status;
    while (!has_end && waitpid(child, ret_status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    atomic_store(&recorder->child, 0);
    return 0;
}
