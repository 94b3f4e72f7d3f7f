#include "base/bounded_copy.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_MS 1000000u
#define PIECE_BYTES 65536
#define COPIERS_MAX 8
#define END_WAIT_MS 100

/* The processes that copy or have copied, and are not collected yet. They are this program's,
 * whichever thread started them. */
static struct {
    pthread_mutex_t lock;
    pid_t pids[COPIERS_MAX];
    size_t count;
} copiers = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

/* Moves *at over a hole, and sets *data_end to where the data there ends. If the file system has no
 * holes, or answers nonsense, all is data. */
static void find_data(int fd, off_t end, off_t *at, off_t *data_end)
{
    off_t data = lseek(fd, *at, SEEK_DATA);
    if ((data < 0 && errno == ENXIO) || data > end)
        data = end; /* the rest is a hole */
    if (data > *at)
        *at = data;
    off_t hole = lseek(fd, *at, SEEK_HOLE);
    *data_end = hole > *at && hole < end ? hole : end;
}

/* Holes stay holes: a sparse file may be far larger than its data. */
static int copy_all(int from_fd, int to_fd)
{
    static char piece[PIECE_BYTES];
    struct stat status;
    if (fstat(from_fd, &status))
        return -errno;
    if (status.st_size > (off_t)BOUNDED_COPY_BYTES_MAX)
        return -EFBIG;
    off_t at = 0, data_end = 0;
    while (at < status.st_size) {
        if (at == data_end) {
            find_data(from_fd, status.st_size, &at, &data_end);
            continue;
        }
        size_t bytes = data_end - at < PIECE_BYTES ? (size_t)(data_end - at) : PIECE_BYTES;
        ssize_t got = pread(from_fd, piece, bytes, at);
        if (got < 0)
            return -errno;
        if (got == 0)
            break; /* it has been cut short */
        if (pwrite(to_fd, piece, (size_t)got, at) != got)
            return -EIO;
        at += got;
    }
    return ftruncate(to_fd, at) ? -errno : 0;
}

/* In the other process. It is killed when the thread that started it ends. */
static void open_and_copy(bounded_open_fn *open_file, void *context, int fds[KEPT], pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || !keep_only(fds))
        return;
    int fd = open_file(context, fds[DIR_FD]);
    int result = fd < 0 ? fd : copy_all(fd, fds[COPY_FD]);
    /* Before the file is closed, which may hang too. */
    if (write(fds[DONE_FD], &result, sizeof result) != sizeof result)
        return;
}

/* Like fork(2), but runs no handlers of pthread_atfork(3), and the end of the child sends no signal
 * and is not seen by a waitpid(2) for any child (clone(2)). The program that uses us may have such
 * handlers, and children of its own. */
static pid_t fork_unnoticed(void)
{
    return (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, NULL);
}

/* Needs the lock. If another part of the program has collected a copier, waitpid fails. */
static void collect(void)
{
    for (size_t i = copiers.count; i-- > 0;) {
        if (waitpid(copiers.pids[i], NULL, WNOHANG | __WALL) != 0)
            copiers.pids[i] = copiers.pids[--copiers.count];
    }
}

/* Signals stay blocked in the copier, so that none of the program's handlers runs there. */
static int start(bounded_open_fn *open_file, void *context, int fds[KEPT], pid_t *ret_child)
{
    sigset_t all, before;
    pid_t parent = getpid();
    int err = -EAGAIN;
    pthread_mutex_lock(&copiers.lock);
    collect();
    if (copiers.count < COPIERS_MAX) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pid_t child = fork_unnoticed();
        if (!child) {
            open_and_copy(open_file, context, fds, parent);
            _exit(0);
        }
        err = child < 0 ? -errno : 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (!err)
            copiers.pids[copiers.count++] = *ret_child = child;
    }
    pthread_mutex_unlock(&copiers.lock);
    return err;
}

/* Even when killed it may not end until the file system answers. So nobody waits for it: it is
 * collected later. */
static void stop(pid_t child)
{
    pthread_mutex_lock(&copiers.lock);
    for (size_t i = 0; i < copiers.count; i++) {
        if (copiers.pids[i] == child)
            kill(child, SIGKILL);
    }
    collect();
    pthread_mutex_unlock(&copiers.lock);
}

void bounded_copy_end(void)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    bool is_left = true;
    for (unsigned i = 0; i < END_WAIT_MS && is_left; i++) {
        if (i)
            nanosleep(&pause, NULL);
        pthread_mutex_lock(&copiers.lock);
        collect();
        is_left = copiers.count > 0;
        pthread_mutex_unlock(&copiers.lock);
    }
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
        pid_t child;
        err = start(open_file, context, fds, &child);
        close(done_fds[1]);
        if (!err) {
            err = wait_until_done(done_fds[0], wait_ns);
            stop(child);
        }
        close(done_fds[0]);
    }
    if (!err)
        return copy_fd;
    close(copy_fd);
    return err;
}
