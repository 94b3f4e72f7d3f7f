/* What processes that serve the network, or connect to it, can still do. The limits of a reading
 * process are tested with the reader (tests/unit/reader). */
#include "unit.h"
#include "base/sandbox.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef __SANITIZE_ADDRESS__ /* without limits under AddressSanitizer */

static int listening_fd = -1, client_fd = -1;

static int set_up(void **state)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof name;
    (void)state;
    listening_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    client_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(listening_fd, (struct sockaddr *)&name, sizeof name) || listen(listening_fd, 1) ||
           getsockname(listening_fd, (struct sockaddr *)&name, &bytes) ||
           connect(client_fd, (struct sockaddr *)&name, sizeof name);
}

static int tear_down(void **state)
{
    (void)state;
    close(listening_fd);
    close(client_fd);
    return 0;
}

/* Runs the child in the sandbox, and returns its exit status. */
static int in_sandbox(enum sandbox_use use, int (*child)(void))
{
    int how;
    pid_t pid = fork();
    if (!pid) {
        sandbox_leave_root(use);
        _exit(sandbox_enter(use, (uint64_t)1 << 30, UINT64_MAX) ? 99 : child());
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

static void *set_number(void *number)
{
    prctl(PR_SET_NAME, "named");
    *(int *)number = 42;
    return NULL;
}

static int have_threads(void)
{
    pthread_t threads[4];
    int numbers[4] = {0}, sum = 0;
    for (int i = 0; i < 4; i++) {
        if (pthread_create(&threads[i], NULL, set_number, &numbers[i]))
            return 1;
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        sum += numbers[i];
    }
    return sum == 4 * 42 ? 0 : 2;
}

static int talk(void)
{
    int ends[2];
    char byte = 0;
    int fd = accept4(listening_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 || send(fd, "x", 1, MSG_NOSIGNAL) != 1 || shutdown(fd, SHUT_WR))
        return 1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) || write(ends[0], "y", 1) != 1)
        return 2;
    return read(ends[1], &byte, 1) == 1 && byte == 'y' ? 0 : 3;
}

static bool is_refused(long returned)
{
    return returned < 0 && errno == ENOSYS;
}

/* Returns 0, or the number of the first call that was not refused. */
static int try_all(void)
{
    char *const none[] = {NULL};
    char number;
    struct iovec here = {&number, 1};
    const bool refused[] = {
        is_refused(fork()),
        is_refused(syscall(SYS_clone3, NULL, 0)),
        is_refused(execve("/bin/true", none, none)),
        is_refused(kill(getppid(), 0)),
        is_refused(syscall(SYS_process_vm_readv, getppid(), &here, 1, &here, 1, 0)),
        is_refused(syscall(SYS_ptrace, 16, getppid(), 0, 0)),
        is_refused(syscall(SYS_bpf, 0, NULL, 0)),
        is_refused(prctl(PR_SET_DUMPABLE, 1)),
        is_refused(unlink("/tmp/fgprof-server-was-here")),
        is_refused(listen(listening_fd, 1)),
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (!refused[i])
            return (int)i + 1;
    }
    return 0;
}

static int open_and_connect(void)
{
    static const struct sockaddr_in name = {.sin_family = AF_INET};
    const bool refused[] = {
        is_refused(open("/etc/passwd", O_RDONLY | O_CLOEXEC)),
        is_refused(open("/tmp/fgprof-server-was-here", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)),
        is_refused(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        is_refused(connect(listening_fd, (const struct sockaddr *)&name, sizeof name)),
        is_refused(bind(listening_fd, (const struct sockaddr *)&name, sizeof name)),
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (!refused[i])
            return (int)i + 1;
    }
    return 0;
}

static int connect_and_read(void)
{
    struct sockaddr_in name;
    socklen_t bytes = sizeof name;
    char text[4];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (getsockname(listening_fd, (struct sockaddr *)&name, &bytes) ||
        connect(fd, (struct sockaddr *)&name, sizeof name))
        return 1;
    fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    if (read(fd, text, sizeof text) != sizeof text)
        return 2;
    return have_threads() ? 3 : 0;
}

/* Returns 0, or the number of the first call that was not refused. */
static int write_files(void)
{
    static const int flags[] = {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_CREAT | O_WRONLY};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (open("/tmp/fgprof-server-was-here", flags[i] | O_CLOEXEC, 0600) >= 0 || errno != EACCES)
            return (int)i + 1;
    }
    return geteuid() ? 0 : 99;
}

static int make_code(void)
{
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return 0;
}

static void test_it_has_threads(void **state)
{
    (void)state;
    assert_int_equal(in_sandbox(SANDBOX_SERVES, have_threads), 0);
}

static void test_it_accepts_and_answers(void **state)
{
    char byte = 0;
    (void)state;
    assert_int_equal(in_sandbox(SANDBOX_SERVES, talk), 0);
    assert_int_equal(read(client_fd, &byte, 1), 1);
    assert_int_equal(byte, 'x');
}

static void test_it_can_do_nothing_else(void **state)
{
    (void)state;
    assert_int_equal(in_sandbox(SANDBOX_SERVES, try_all), 0);
    assert_int_equal(in_sandbox(SANDBOX_SERVES, open_and_connect), 0);
    assert_int_equal(access("/tmp/fgprof-server-was-here", F_OK), -1);
}

static void test_a_client_connects_and_reads(void **state)
{
    (void)state;
    assert_int_equal(in_sandbox(SANDBOX_CONNECTS, connect_and_read), 0);
}

/* It is no longer root. */
static void test_a_client_can_do_nothing_else(void **state)
{
    (void)state;
    assert_int_equal(in_sandbox(SANDBOX_CONNECTS, try_all), 0);
    assert_int_equal(in_sandbox(SANDBOX_CONNECTS, write_files), 0);
    assert_int_equal(access("/tmp/fgprof-server-was-here", F_OK), -1);
}

static void test_it_is_killed_if_it_makes_code(void **state)
{
    int how;
    (void)state;
    pid_t pid = fork();
    if (!pid)
        _exit(sandbox_enter(SANDBOX_SERVES, (uint64_t)1 << 30, UINT64_MAX) ? 99 : make_code());
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGSYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_has_threads),
        cmocka_unit_test_setup_teardown(test_it_accepts_and_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_it_can_do_nothing_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_client_connects_and_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_client_can_do_nothing_else, set_up, tear_down),
        cmocka_unit_test(test_it_is_killed_if_it_makes_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped */
}

#endif
