/* The functions of fgprof.h that start a command and wait for it. */
#include "recorder/recorder.h"
#include "base/clock.h"
#include "base/memlock.h"
#include "base/own_directory.h"
#include "objects/agent.h"
#include "objects/source.h"
#include "proc/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGENT_FILE "libfgprof-agent.so"
#define PRELOAD "LD_PRELOAD="
#define SEPARATORS " :" /* ld.so(8): a path can't have them */
#define VARIABLES_MAX 5
#define PROGRAM_WAIT_NS 1000000000u

extern char **environ;

/* Looks next to the program, then where libraries are installed. */
static bool find_agent(char path[PATH_MAX])
{
    static const char *const directories[] = {"", "/../lib", "/../" FGPROF_LIBRARIES};
    char own[PATH_MAX], name[PATH_MAX];
    bool has_own = own_directory_find(own);
    for (size_t i = 0; has_own && i < sizeof directories / sizeof *directories; i++) {
        int length = snprintf(name, sizeof name, "%s%s/" AGENT_FILE, own, directories[i]);
        if (length < PATH_MAX && access(name, R_OK) == 0 && realpath(name, path))
            return true;
    }
    return access(FGPROF_LIBRARIES_FULL "/" AGENT_FILE, R_OK) == 0 &&
           realpath(FGPROF_LIBRARIES_FULL "/" AGENT_FILE, path);
}

/* The agent comes first, so that it precedes other preloaded allocators. A program that does not
 * load it, because it is linked statically, hands the variables on to those that it starts. The
 * agent in them finds that this process is not their parent, and stays idle. */
static int make_variables(const char *path, const struct object_options *objects, bool has_children,
                          char *variables[VARIABLES_MAX])
{
    const char *others = getenv("LD_PRELOAD");
    bool has_others = others && *others;
    int lengths[VARIABLES_MAX] = {
        asprintf(&variables[0], PRELOAD "%s%s%s", path, has_others ? ":" : "",
                 has_others ? others : ""),
        asprintf(&variables[1], "FGPROF_AGENT_HEAP_RATE=%" PRIu64,
                 objects->kinds[OBJECT_ALLOCATION] ? objects->heap_rate : 0),
        asprintf(&variables[2], "FGPROF_AGENT_WANTED=%u", agent_wants(objects)),
        asprintf(&variables[3], "FGPROF_AGENT_CHILDREN=%d", has_children),
        asprintf(&variables[4], "FGPROF_AGENT_PARENT=%d", getpid()),
    };
    int err = 0;
    for (size_t i = 0; i < VARIABLES_MAX; i++) {
        if (lengths[i] < 0) {
            variables[i] = NULL;
            err = -ENOMEM;
        }
    }
    return err;
}

static bool is_replaced(const char *variable, char *const variables[VARIABLES_MAX])
{
    for (size_t i = 0; i < VARIABLES_MAX; i++) {
        size_t length = strcspn(variables[i], "=") + 1;
        if (strncmp(variable, variables[i], length) == 0)
            return true;
    }
    return false;
}

static void preload_free(char **environment)
{
    for (size_t i = 0; environment && i < VARIABLES_MAX; i++)
        free(environment[i]);
    free(environment);
}

static size_t count_variables(void)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    return count;
}

/* Makes the calling process's environment with settings that make the dynamic linker load the
 * agent, and the agent's own settings, which come first; the others are not copied. If
 * `has_children`, the program's children get the agent too. The caller frees the array with
 * preload_free. Returns 0, -ELIBACC if libfgprof-agent.so is not found, -ELIBBAD if LD_PRELOAD
 * can't hold its path, or -ENOMEM. */
static int preload_environment(const struct object_options *objects, bool has_children,
                               char ***ret_environment)
{
    char path[PATH_MAX];
    if (!find_agent(path))
        return -ELIBACC;
    if (strpbrk(path, SEPARATORS))
        return -ELIBBAD;
    char **environment = calloc(count_variables() + VARIABLES_MAX + 1, sizeof *environment);
    if (!environment)
        return -ENOMEM;
    int err = make_variables(path, objects, has_children, environment);
    if (err) {
        preload_free(environment);
        return err;
    }
    char **to = environment + VARIABLES_MAX;
    for (char **at = environ; at && *at; at++) {
        if (!is_replaced(*at, environment))
            *to++ = *at;
    }
    *ret_environment = environment;
    return 0;
}

/* The command gets the caller's signal mask. The two signals that a program ignores while it writes
 * profiles are reset to their default action. */
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
    /* A signal handler must not see the command before its id is stored. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = set_signals(&attributes, &before);
    if (!err && stdout_fd >= 0)
        err = posix_spawn_file_actions_adddup2(&actions, stdout_fd, STDOUT_FILENO);
    /* posix_spawn(3) returns after the exec (glibc 2.24 and later), so our own code is never
     * sampled in the child. */
    if (!err) {
        bool was_raised = memlock_restore(); /* the command has our limits as they were */
        err = posix_spawnp(&child, argv[0], &actions, &attributes, argv, environment);
        if (was_raised)
            memlock_raise();
    }
    if (!err)
        atomic_store(&recorder->child, child);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -err;
}

/* Loads the agent if objects need it, or, if it can be found, for threads that the kernel does not
 * report. *ret_environment is NULL if the caller's is used. */
static int make_environment(const struct fgprof_recorder *recorder, char ***ret_environment)
{
    const struct sampler_options *options = &recorder->options.sampler;
    if (!recorder->sampler.collector)
        return 0;
    const struct object_options wanted = collector_agent_options(recorder->sampler.collector);
    if (!wanted.kinds[OBJECT_ALLOCATION] && !wanted.kinds[OBJECT_THREAD])
        return 0;
    int err = preload_environment(&wanted, options->has_children, ret_environment);
    return wanted.kinds[OBJECT_ALLOCATION] || err == -ENOMEM ? err : 0;
}

/* posix_spawn starts the command like vfork(2): the parent continues a moment before the child has
 * its own memory (exec_mmap in the kernel's fs/exec.c). Until then the kernel lets us read it like
 * our own, even where tracing is forbidden. */
static void await_program(pid_t child)
{
    const struct timespec pause = {.tv_nsec = 100000};
    uint64_t until_ns = monotonic_ns() + PROGRAM_WAIT_NS;
    struct proc_stat stat;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    /* If /proc shows another PID namespace, this id is that of another process. */
    while (!procfs_stat(AT_FDCWD, path, &stat) && stat.parent == getpid() &&
           proc_stat_is_only_forked(&stat) && !proc_stat_has_exited(&stat) &&
           monotonic_ns() < until_ns)
        nanosleep(&pause, NULL);
}

int fgprof_recorder_spawn(fgprof_recorder *recorder, char *const argv[], int stdout_fd)
{
    char **environment = NULL;
    if (atomic_load(&recorder->child) || recorder->spawned_ns)
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
    await_program(atomic_load(&recorder->child));
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
