#include "unit.h"
#include "wait/peers.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

/* A child with only these of this process's descriptors. */
static pid_t child_with(const int *fds, size_t count)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int fd = 0; fd < 64; fd++) {
            bool is_kept = fd == ready[1];
            for (size_t i = 0; i < count; i++)
                is_kept = is_kept || fd == fds[i];
            if (!is_kept)
                close(fd);
        }
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        close(ready[1]);
        for (;;)
            pause();
    }
    assert_true(child > 0);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The answer for this process waiting for `fd` with this use, if these processes are searched. */
static struct peer_answer answer_of(int fd, enum file_use use, const pid_t *pids, size_t count)
{
    struct peers peers = {0};
    struct peer_answer answer, again;
    char path[64], link[PATH_MAX] = "";
    int own_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "/proc/%d", pids[i]);
        int proc_fd = open(path, O_PATH | O_DIRECTORY);
        assert_true(proc_fd >= 0);
        assert_int_equal(peers_add_process(&peers, pids[i], proc_fd), 0);
        close(proc_fd);
    }
    peers_finish(&peers);
    snprintf(path, sizeof path, "fd/%d", fd);
    assert_true(readlinkat(own_fd, path, link, sizeof link - 1) > 0);
    const struct waited_file file = {getpid(), own_fd, fd, use, link, false};
    assert_int_equal(peers_find(&peers, &file, &answer), 0);
    assert_int_equal(peers_find(&peers, &file, &again), 0);
    assert_int_equal(again.process_id, answer.process_id);
    assert_string_equal(again.text, answer.text);
    peers_free(&peers);
    close(own_fd);
    return answer;
}

static void test_pipes(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t writer = child_with(&ends[1], 1), reader = child_with(&ends[0], 1);
    const pid_t both[] = {writer, reader, getpid()};
    struct peer_answer answer = answer_of(ends[0], FILE_USE_READ, both, 2);
    assert_int_equal(answer.resource.kind, RESOURCE_PIPE);
    assert_int_equal(answer.process_id, writer);
    assert_int_equal(answer_of(ends[1], FILE_USE_WRITE, both, 2).process_id, reader);
    assert_int_equal(answer_of(ends[0], FILE_USE_OTHER, both, 2).process_id, 0);
    /* This process can write as well. */
    assert_int_equal(answer_of(ends[0], FILE_USE_READ, both, 3).process_id, 0);
    assert_int_equal(answer_of(ends[0], FILE_USE_READ, &both[2], 1).process_id, getpid());
    assert_int_equal(answer_of(ends[0], FILE_USE_READ, &both[1], 1).process_id, 0);
    end_child(writer);
    end_child(reader);
    close(ends[0]);
    close(ends[1]);
}

static void test_fifos(void **state)
{
    (void)state;
    char directory[] = "/tmp/unit-peers-XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/fifo", directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reading = open(path, O_RDONLY | O_NONBLOCK), writing = open(path, O_WRONLY);
    pid_t writer = child_with(&writing, 1);
    const pid_t pids[] = {writer, getpid()};
    close(writing);
    struct peer_answer answer = answer_of(reading, FILE_USE_READ, pids, 2);
    assert_int_equal(answer.resource.kind, RESOURCE_FIFO);
    assert_int_equal(answer.process_id, writer);
    end_child(writer);
    close(reading);
    int file = open(path, O_RDWR);
    unlink(path);
    close(file);
    file = open(path, O_RDWR | O_CREAT, 0600);
    answer = answer_of(file, FILE_USE_READ, pids + 1, 1);
    assert_int_equal(answer.resource.kind, RESOURCE_FILE);
    assert_int_equal(answer.process_id, 0);
    close(file);
    unlink(path);
    rmdir(directory);
}

/* A child that is waiting for a lock on the file. */
static pid_t child_that_locks(const char *path, enum file_use use, int holding_fd)
{
    struct flock whole = {.l_type = F_WRLCK};
    struct file_locks locks = {0};
    struct stat status;
    bool is_waiting = false;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(holding_fd);
        int fd = open(path, O_RDWR);
        _exit(use == FILE_USE_FLOCK ? flock(fd, LOCK_EX) : fcntl(fd, F_OFD_SETLKW, &whole));
    }
    assert_true(child > 0);
    assert_int_equal(stat(path, &status), 0);
    while (!is_waiting) {
        const struct timespec length = {0, 1000000};
        nanosleep(&length, NULL);
        file_locks_free(&locks);
        assert_int_equal(file_locks_read(&locks), 0);
        for (size_t i = 0; i < locks.count; i++)
            is_waiting = is_waiting || locks.waits[i].waiter.inode == status.st_ino;
    }
    file_locks_free(&locks);
    return child;
}

/* The process that `waiter` waits for, with its descriptor of the file. */
static pid_t holder_for(pid_t waiter, const char *path, enum file_use use, pid_t looked_at)
{
    struct peers peers = {0};
    struct peer_answer answer;
    char name[64];
    snprintf(name, sizeof name, "/proc/%d", looked_at);
    int proc_fd = open(name, O_PATH | O_DIRECTORY), fd = open(path, O_RDWR);
    int own_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    assert_int_equal(peers_add_process(&peers, looked_at, proc_fd), 0);
    peers_finish(&peers);
    const struct waited_file file = {waiter, own_fd, fd, use, path, false};
    assert_int_equal(peers_find(&peers, &file, &answer), 0);
    assert_int_equal(answer.resource.kind, RESOURCE_FILE_LOCK);
    peers_free(&peers);
    close(proc_fd);
    close(own_fd);
    close(fd);
    return answer.process_id;
}

/* Outside the initial PID namespace, /proc/locks omits locks whose process has ended
 * (locks_translate_pid in the kernel's fs/locks.c). */
static bool shows_locks_of_ended_processes(void)
{
    char link[64] = "";
    return readlink("/proc/self/ns/pid", link, sizeof link - 1) > 0 &&
           strcmp(link, "pid:[4026531836]") == 0;
}

/* The process that took the lock has ended, but its child still has the descriptor. */
static void test_locks_that_were_passed_on(void **state)
{
    (void)state;
    if (!shows_locks_of_ended_processes())
        skip();
    static const enum file_use uses[] = {FILE_USE_FLOCK, FILE_USE_OFD_LOCK};
    char path[] = "/tmp/unit-peers-XXXXXX";
    struct flock whole = {.l_type = F_WRLCK};
    close(mkstemp(path));
    for (size_t i = 0; i < 2; i++) {
        int fd = open(path, O_RDWR);
        pid_t locking = fork();
        if (locking == 0)
            _exit(uses[i] == FILE_USE_FLOCK ? flock(fd, LOCK_EX) : fcntl(fd, F_OFD_SETLK, &whole));
        assert_int_equal(waitpid(locking, NULL, 0), locking);
        pid_t holder = child_with(&fd, 1), waiter = child_that_locks(path, uses[i], fd);
        close(fd);
        assert_int_equal(holder_for(waiter, path, uses[i], holder), holder);
        assert_int_equal(holder_for(waiter, path, uses[i], waiter), 0);
        end_child(waiter);
        end_child(holder);
    }
    unlink(path);
}

static void test_unix_sockets(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t child = child_with(&ends[1], 1);
    const pid_t pids[] = {child, getpid()};
    /* Both have the other end. */
    assert_int_equal(answer_of(ends[0], FILE_USE_READ, pids, 2).process_id, 0);
    close(ends[1]);
    struct peer_answer answer = answer_of(ends[0], FILE_USE_READ, pids, 2);
    assert_int_equal(answer.resource.kind, RESOURCE_UNIX_SOCKET);
    assert_string_equal(answer.text, "unix stream");
    assert_int_equal(answer.process_id, child);
    assert_int_equal(answer_of(ends[0], FILE_USE_READ, &pids[1], 1).process_id, 0);
    end_child(child);
    close(ends[0]);
}

static void check_tcp(int family)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *address = family == AF_INET6 ? (struct sockaddr *)&six : (void *)&four;
    socklen_t length = family == AF_INET6 ? sizeof six : sizeof four;
    int listening = socket(family, SOCK_STREAM, 0), connected = socket(family, SOCK_STREAM, 0);
    if (listening < 0 || bind(listening, address, length))
        return; /* this machine lacks IPv6 */
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, address, &length), 0);
    assert_int_equal(connect(connected, address, length), 0);
    int accepted = accept(listening, NULL, NULL);
    pid_t child = child_with(&accepted, 1);
    const pid_t pids[] = {child, getpid()};
    close(accepted);
    struct peer_answer answer = answer_of(connected, FILE_USE_READ, pids, 2);
    assert_int_equal(answer.resource.kind, RESOURCE_TCP_SOCKET);
    assert_int_equal(answer.process_id, child);
    assert_non_null(strstr(answer.text, " -> "));
    answer = answer_of(listening, FILE_USE_READ, pids, 2);
    assert_int_equal(answer.process_id, 0);
    assert_non_null(strstr(answer.text, "listening"));
    end_child(child);
    close(connected);
    close(listening);
}

static void test_tcp(void **state)
{
    (void)state;
    check_tcp(AF_INET);
    check_tcp(AF_INET6);
}

/* A listener for IPv6 with an IPv4 connection: the two ends are in different tables. */
static void test_tcp_of_both_kinds(void **state)
{
    (void)state;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    socklen_t length = sizeof any;
    int listening = socket(AF_INET6, SOCK_STREAM, 0), connected = socket(AF_INET, SOCK_STREAM, 0);
    if (listening < 0 || bind(listening, (struct sockaddr *)&any, length))
        skip();
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&any, &length), 0);
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = any.sin6_port,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(connected, (struct sockaddr *)&four, sizeof four), 0);
    int accepted = accept(listening, NULL, NULL);
    pid_t child = child_with(&connected, 1);
    const pid_t pids[] = {child, getpid()};
    close(connected);
    assert_int_equal(answer_of(accepted, FILE_USE_READ, pids, 2).process_id, child);
    end_child(child);
    close(accepted);
    close(listening);
}

/* The name of a Unix socket looks like a line of the kernel's table, for a socket in no table. */
static void test_a_forged_socket(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    const pid_t own = getpid();
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
    int named = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), plain[2];
    assert_int_equal(fstat(netlink, &status), 0);
    int length =
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                 "%d\n0: 2 0 0 0001 01 %llu /run/forged", own, (unsigned long long)status.st_ino);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    assert_int_equal(bind(named, (const struct sockaddr *)&address, bytes), 0);
    struct peer_answer answer = answer_of(netlink, FILE_USE_READ, &own, 1);
    assert_false(answer.is_known);
    assert_string_equal(answer.text, "");
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, plain), 0);
    assert_string_equal(answer_of(plain[0], FILE_USE_READ, &own, 1).text, "unix datagram");
    close(netlink);
    close(named);
    close(plain[0]);
    close(plain[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipes),
        cmocka_unit_test(test_fifos),
        cmocka_unit_test(test_locks_that_were_passed_on),
        cmocka_unit_test(test_unix_sockets),
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_tcp_of_both_kinds),
        cmocka_unit_test(test_a_forged_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
