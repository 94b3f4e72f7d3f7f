#include "base/bounded_copy.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_MS 1000000u
#define PIECE_BYTES 65536
#define ENDS_AFTER_S 60 /* if it waits for something that a signal ends */

/* The only descriptors that the other process keeps. It closes all others, because a pipe reaches
 * its end only when every process has closed it. */
enum { DIR_FD, COPY_FD, DONE_FD, KEPT };

/* Gives the descriptors the numbers from 0 on, and closes all others. */
static bool keep_only(int fds[KEPT])
{
    for (int i = 0; i < KEPT; i++) {
        fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, KEPT);
        if (fds[i] < 0)
            return false;
    }
    for (int i = 0; i < KEPT; i++) {
        if (dup2(fds[i], i) < 0)
            return false;
        fds[i] = i;
    }
    return syscall(SYS_close_range, KEPT, ~0u, 0) == 0;
}

static int copy_all(int from_fd, int to_fd)
{
    static char piece[PIECE_BYTES];
    struct stat status;
    if (fstat(from_fd, &status))
        return -errno;
    if (status.st_size > (off_t)BOUNDED_COPY_BYTES_MAX)
        return -EFBIG;
    for (off_t at = 0; at < status.st_size;) {
        ssize_t got = pread(from_fd, piece, sizeof piece, at);
        if (got < 0)
            return -errno;
        if (got == 0)
            return 0; /* it has been cut short */
        if (pwrite(to_fd, piece, (size_t)got, at) != got)
            return -EIO;
        at += got;
    }
    return 0;
}

/* Whatever the caller does about signals. */
static void end_by_alarm(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &ends, NULL);
    alarm(ENDS_AFTER_S);
}

/* In the other process. */
static void open_and_copy(bounded_open_fn *open_file, void *context, int fds[KEPT])
{
    if (!keep_only(fds))
        return;
    end_by_alarm();
    int fd = open_file(context, fds[DIR_FD]);
    int result = fd < 0 ? fd : copy_all(fd, fds[COPY_FD]);
    /* Before the file is closed, which may hang too. */
    if (write(fds[DONE_FD], &result, sizeof result) != sizeof result)
        return;
}

/* Nobody has to wait for a process whose parent has ended. */
static int start(bounded_open_fn *open_file, void *context, int fds[KEPT])
{
    pid_t child = fork();
    if (child < 0)
        return -errno;
    if (!child) {
        if (fork() == 0)
            open_and_copy(open_file, context, fds);
        _exit(0);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return 0;
}

static int wait_until_done(int done_fd, uint64_t *wait_ns)
{
    struct pollfd done = {.fd = done_fd, .events = POLLIN};
    uint64_t began_ns = monotonic_ns(), end_ns = began_ns + *wait_ns, now_ns = began_ns;
    int result, count = 0;
    while (now_ns < end_ns && count <= 0) {
        count = poll(&done, 1, (int)((end_ns - now_ns) / NS_PER_MS) + 1);
        now_ns = monotonic_ns();
    }
    *wait_ns = now_ns < end_ns ? end_ns - now_ns : 0;
    if (count <= 0)
        return -ETIMEDOUT;
    return read(done_fd, &result, sizeof result) == sizeof result ? result : -EIO;
}

int bounded_copy(bounded_open_fn *open_file, void *context, int dir_fd, uint64_t *wait_ns)
{
    int done_fds[2];
    if (!*wait_ns)
        return -ETIMEDOUT;
    int copy_fd = memfd_create("fgprof-copy", MFD_CLOEXEC);
    if (copy_fd < 0)
        return -errno;
    int err = pipe2(done_fds, O_CLOEXEC) ? -errno : 0;
    if (!err) {
        int fds[KEPT] = {[DIR_FD] = dir_fd, [COPY_FD] = copy_fd, [DONE_FD] = done_fds[1]};
        err = start(open_file, context, fds);
        close(done_fds[1]);
        if (!err)
            err = wait_until_done(done_fds[0], wait_ns);
        close(done_fds[0]);
    }
    if (!err)
        return copy_fd;
    close(copy_fd);
    return err;
}
