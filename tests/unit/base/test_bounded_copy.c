#include "unit.h"
#include "base/bounded_copy.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MS 1000000u
#define MIB (1 << 20)
#define MANY 8 /* more are not at work at once */

/* Opens the file with that name in the directory. */
static int open_name(void *name, int dir_fd)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int never_open(void *ends, int dir_fd)
{
    (void)dir_fd;
    pause();
    return *(int *)ends;
}

static int open_large(void *unused, int dir_fd)
{
    (void)unused, (void)dir_fd;
    int fd = memfd_create("large", MFD_CLOEXEC);
    return ftruncate(fd, (off_t)BOUNDED_COPY_BYTES_MAX + 1) ? -errno : fd;
}

static const char datum[] = "between two holes";

static int open_sparse(void *unused, int dir_fd)
{
    (void)unused, (void)dir_fd;
    int fd = memfd_create("sparse", MFD_CLOEXEC);
    if (ftruncate(fd, 200 * MIB) || pwrite(fd, datum, sizeof datum, 100 * MIB) != sizeof datum)
        return -errno;
    return fd;
}

/* Says that it is at work, and waits for an answer. */
static int open_when_told(void *unused, int socket)
{
    char byte = 0;
    (void)unused;
    if (write(socket, &byte, 1) != 1 || read(socket, &byte, 1) != 1)
        return -EPIPE;
    return -EXDEV;
}

static int root(void)
{
    return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void test_a_copy_is_whole(void **state)
{
    (void)state;
    uint64_t wait_ns = 60000ull * MS;
    struct stat original, copied;
    int dir_fd = root();
    int fd = bounded_copy(open_name, (char *)"proc/self/exe", dir_fd, &wait_ns);
    assert_true(fd >= 0);
    assert_true(wait_ns > 0 && wait_ns < 60000ull * MS);
    assert_int_equal(stat("/proc/self/exe", &original), 0);
    assert_int_equal(fstat(fd, &copied), 0);
    assert_int_equal(copied.st_size, original.st_size);
    char *copy = contents_of(fd, NULL);
    int own_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    char *own = contents_of(own_fd, NULL);
    assert_memory_equal(copy, own, (size_t)original.st_size);
    free(copy);
    free(own);
    close(own_fd);
    close(fd);
    close(dir_fd);
}

static void test_holes_stay_holes(void **state)
{
    (void)state;
    uint64_t wait_ns = 60000ull * MS;
    struct stat copied;
    char got[sizeof datum];
    int dir_fd = root();
    int fd = bounded_copy(open_sparse, NULL, dir_fd, &wait_ns);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &copied), 0);
    assert_int_equal(copied.st_size, 200 * MIB);
    assert_in_range(copied.st_blocks * 512, 1, 4 * MIB);
    assert_int_equal(pread(fd, got, sizeof got, 100 * MIB), sizeof got);
    assert_memory_equal(got, datum, sizeof datum);
    close(fd);
    close(dir_fd);
}

static unsigned forks;

static void count_fork(void)
{
    forks++;
}

/* This program's handlers, signals and waits for any child, and, as its reaper of orphans, process
 * 1 of a container, notice nothing. */
static void test_the_program_does_not_notice(void **state)
{
    (void)state;
    uint64_t wait_ns = 60000ull * MS;
    sigset_t child, pending;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    assert_int_equal(sigprocmask(SIG_BLOCK, &child, NULL), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pthread_atfork(count_fork, NULL, NULL), 0);
    int dir_fd = root();
    int fd = bounded_copy(open_name, (char *)"proc/self/exe", dir_fd, &wait_ns);
    assert_true(fd >= 0);
    assert_int_equal(waitpid(-1, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
    bounded_copy_end();
    assert_int_equal(waitpid(-1, NULL, __WALL), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGCHLD));
    assert_int_equal(forks, 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    close(fd);
    close(dir_fd);
}

static void *copy_when_told(void *socket)
{
    uint64_t wait_ns = 60000ull * MS;
    assert_int_equal(bounded_copy(open_when_told, NULL, *(int *)socket, &wait_ns), -EXDEV);
    return NULL;
}

static void test_not_too_many_at_once(void **state)
{
    (void)state;
    pthread_t threads[MANY];
    uint64_t wait_ns = 60000ull * MS;
    int sockets[2], dir_fd = root();
    char bytes[MANY] = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, copy_when_told, &sockets[1]), 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(read(sockets[0], bytes, 1), 1);
    assert_int_equal(bounded_copy(open_name, (char *)"proc/self/exe", dir_fd, &wait_ns), -EAGAIN);
    assert_int_equal(write(sockets[0], bytes, MANY), MANY);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    bounded_copy_end();
    int fd = bounded_copy(open_name, (char *)"proc/self/exe", dir_fd, &wait_ns);
    assert_true(fd >= 0);
    close(fd);
    close(sockets[0]);
    close(sockets[1]);
    close(dir_fd);
}

static void test_why_there_is_none(void **state)
{
    (void)state;
    uint64_t wait_ns = 60000ull * MS;
    int dir_fd = root();
    assert_int_equal(bounded_copy(open_name, (char *)"no such file", dir_fd, &wait_ns), -ENOENT);
    assert_int_equal(bounded_copy(open_large, NULL, dir_fd, &wait_ns), -EFBIG);
    close(dir_fd);
}

/* The time waited is subtracted until none is left. The process ends, and keeps none of our files
 * open: a reader of our output would otherwise wait for its end. */
static void test_what_never_opens(void **state)
{
    (void)state;
    uint64_t wait_ns = 30 * MS;
    int dir_fd = root(), ends[2], never = -EIO;
    char byte;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(bounded_copy(never_open, &never, dir_fd, &wait_ns), -ETIMEDOUT);
    assert_int_equal(wait_ns, 0);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    assert_int_equal(bounded_copy(open_name, (char *)"proc/self/exe", dir_fd, &wait_ns),
                     -ETIMEDOUT);
    bounded_copy_end();
    assert_int_equal(waitpid(-1, NULL, __WALL), -1);
    assert_int_equal(errno, ECHILD);
    close(ends[0]);
    close(dir_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_copy_is_whole),
        cmocka_unit_test(test_holes_stay_holes),
        cmocka_unit_test(test_the_program_does_not_notice),
        cmocka_unit_test(test_not_too_many_at_once),
        cmocka_unit_test(test_why_there_is_none),
        cmocka_unit_test(test_what_never_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
