#include "cli/record/shell.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_NS 10000000000u
#define STEP_MS 20 /* between looks, if the kernel does not tell the end (pidfd_open(2)) */

extern char **environ;

/* A process group of its own, with no signal blocked or ignored: we block and ignore some. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    sigaddset(&ignored, SIGTSTP);
    int err = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                       POSIX_SPAWN_SETSIGDEF);
    if (!err)
        err = posix_spawnattr_setsigmask(attributes, &none);
    return err ? err : posix_spawnattr_setsigdefault(attributes, &ignored);
}

static int start_with(const char *command, posix_spawnattr_t *attributes,
                      posix_spawn_file_actions_t *files, pid_t *ret_pid)
{
    const char *words[] = {"sh", "-c", command, NULL};
    int err = set_attributes(attributes);
    if (!err)
        err = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!err)
        err = posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    return err ? err
               : posix_spawn(ret_pid, "/bin/sh", files, attributes, (char *const *)words, environ);
}

static int start(const char *command, pid_t *ret_pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    int err = posix_spawnattr_init(&attributes);
    if (err)
        return err;
    err = posix_spawn_file_actions_init(&files);
    if (!err) {
        err = start_with(command, &attributes, &files, ret_pid);
        posix_spawn_file_actions_destroy(&files);
    }
    posix_spawnattr_destroy(&attributes);
    return err;
}

/* Waits for its end. Returns false if it has been killed. */
static bool wait_for_end(pid_t pid, int pidfd, int stop_fd, int *ret_status)
{
    struct pollfd waits[] = {{.fd = stop_fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    for (uint64_t end_ns = monotonic_ns() + LIMIT_NS, now; (now = monotonic_ns()) < end_ns;) {
        int left_ms = (int)((end_ns - now) / 1000000) + 1;
        if (pidfd < 0 && left_ms > STEP_MS)
            left_ms = STEP_MS;
        if (poll(waits, 2, left_ms) < 0 && errno != EINTR)
            break;
        if (waits[0].revents)
            break;
        if (waitpid(pid, ret_status, WNOHANG) == pid)
            return true;
    }
    kill(-pid, SIGKILL);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    return false;
}

bool shell_succeeds(const char *command, int stop_fd)
{
    pid_t pid;
    int status;
    if (start(command, &pid))
        return false;
    int pidfd = pidfd_open(pid, 0);
    bool has_ended = wait_for_end(pid, pidfd, stop_fd, &status);
    if (pidfd >= 0)
        close(pidfd);
    return has_ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
