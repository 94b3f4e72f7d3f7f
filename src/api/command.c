/* Starts the command that is to be sampled, and waits for its end. */
#include "recorder/recorder.h"
#include "api/preload.h"
#include "base/clock.h"
#include "sampler/objects.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The command gets the caller's signal mask. The two signals that a program ignores when it writes
 * profiles get their default action. */
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

/* `environment` is the command's. */
static int spawn(struct fgprof_recorder *recorder, char *const argv[], char **environment,
                 int stdout_fd)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    pid_t child;
    if (posix_spawnattr_init(&attributes))
        return -ENOMEM;
    if (posix_spawn_file_actions_init(&actions)) {
        posix_spawnattr_destroy(&attributes);
        return -ENOMEM;
    }
    /* A signal handler must not ask for the command before its id is stored. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = set_signals(&attributes, &before);
    if (!err && stdout_fd >= 0)
        err = posix_spawn_file_actions_adddup2(&actions, stdout_fd, STDOUT_FILENO);
    /* posix_spawn(3) returns after the exec (glibc 2.24 and later), so our own code is never
     * sampled in the child. */
    if (!err)
        err = posix_spawnp(&child, argv[0], &actions, &attributes, argv, environment);
    if (!err)
        atomic_store(&recorder->child, child);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -err;
}

/* The agent is also for threads that the kernel does not tell of, as far as it can be had.
 * *ret_environment: NULL: the caller's. */
static int make_environment(const struct fgprof_recorder *recorder, char ***ret_environment)
{
    const struct sampler_options *options = &recorder->options.sampler;
    const struct object_options wanted = objects_of_agent(&recorder->sampler);
    if (!wanted.kinds[OBJECT_ALLOCATION] && !wanted.kinds[OBJECT_THREAD])
        return 0;
    int err = preload_environment(&wanted, options->has_children, ret_environment);
    return wanted.kinds[OBJECT_ALLOCATION] || err == -ENOMEM ? err : 0;
}

int fgprof_recorder_spawn(fgprof_recorder *recorder, char *const argv[], int stdout_fd)
{
    char **environment = NULL;
    if (atomic_load(&recorder->child))
        return -EEXIST;
    int err = sampler_prepare(&recorder->sampler);
    if (!err)
        err = make_environment(recorder, &environment);
    if (!err)
        err = spawn(recorder, argv, environment ? environment : environ, stdout_fd);
    preload_free(environment);
    if (err)
        return err;
    recorder->spawned_ns = monotonic_ns();
    err = fgprof_recorder_attach(recorder, atomic_load(&recorder->child));
    return err == -ESRCH ? 0 : err; /* it has exited already: there are no samples */
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
