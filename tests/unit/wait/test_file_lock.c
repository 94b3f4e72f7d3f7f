#include "unit.h"
#include "wait/file_lock.h"

#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static void test_lines(void **state)
{
    (void)state;
    struct file_lock lock;
    assert_true(file_lock_parse("1: POSIX  ADVISORY  WRITE 15864 fe:00:10953261 0 9\n", &lock));
    assert_int_equal(lock.use, FILE_USE_POSIX_LOCK);
    assert_false(lock.waits);
    assert_int_equal(lock.process_id, 15864);
    assert_int_equal(lock.major, 0xfe);
    assert_int_equal(lock.minor, 0);
    assert_int_equal(lock.inode, 10953261);
    assert_true(file_lock_parse("12:  -> OFDLCK ADVISORY  READ -1 103:0a:7 0 EOF", &lock));
    assert_int_equal(lock.use, FILE_USE_OFD_LOCK);
    assert_true(lock.waits);
    assert_int_equal(lock.process_id, -1);
    assert_int_equal(lock.major, 0x103);
    assert_int_equal(lock.minor, 0xa);
    assert_true(file_lock_parse("\t1: FLOCK  ADVISORY  WRITE 1 fe:00:2 0 EOF", &lock));
    assert_int_equal(lock.use, FILE_USE_FLOCK);
    static const char *const others[] = {
        "",
        "1:",
        "1: LEASE  ACTIVE    READ  1 fe:00:2 0 EOF",
        "1: POSIX  *NOINODE* UNLCK 1 <none>:0 0 EOF",
        "1: FLOCK  ADVISORY  WRITE 1 fe:00",
        "x: FLOCK  ADVISORY  WRITE 1 fe:00:2 0 EOF",
        "1: FLOCKFLOCKFLOCK ADVISORY WRITE 1 fe:00:2 0 EOF",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(file_lock_parse(others[i], &lock));
}

static struct file_locks locks_of(const char *const *lines, size_t count)
{
    struct file_locks locks = {0};
    for (size_t i = 0; i < count; i++)
        assert_int_equal(file_locks_add_line(&locks, lines[i]), 0);
    return locks;
}

static void test_holders(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "1: POSIX  ADVISORY  WRITE 10 fe:00:7 0 9",
        "1: -> POSIX  ADVISORY  WRITE 11 fe:00:7 0 9",
        "1:  -> OFDLCK ADVISORY  WRITE -1 fe:00:7 0 9",
        "2: FLOCK  ADVISORY  WRITE 20 fe:00:7 0 EOF",
        "2: -> FLOCK  ADVISORY  WRITE 21 fe:00:7 0 EOF",
        "2:  -> FLOCK  ADVISORY  WRITE 11 fe:00:7 0 EOF",
        "3: OFDLCK ADVISORY  WRITE -1 fe:00:8 0 EOF",
        "3: -> POSIX  ADVISORY  WRITE 11 fe:00:8 0 EOF",
        "4: LEASE  BREAKING  READ  30 fe:00:9 0 EOF",
        "4: -> FLOCK  ADVISORY  WRITE 31 fe:00:9 0 EOF",
        "5: POSIX  ADVISORY  WRITE 40 fe:00:50 0 9",
        "5: -> POSIX  ADVISORY  WRITE 41 fe:00:50 0 9",
        "6: POSIX  ADVISORY  WRITE 42 fe:00:50 10 19",
        "6: -> POSIX  ADVISORY  WRITE 41 fe:00:50 10 19",
        "7: POSIX  ADVISORY  WRITE 60 fe:00:60 0 9",
        "7: -> POSIX  ADVISORY  WRITE 61 fe:00:61 0 9",
    };
    struct file_locks locks = locks_of(lines, sizeof lines / sizeof *lines);
    assert_int_equal(file_locks_holder(&locks, FILE_USE_POSIX_LOCK, 7, 11), 10);
    assert_int_equal(file_locks_holder(&locks, FILE_USE_OFD_LOCK, 7, 11), 10);
    assert_int_equal(file_locks_holder(&locks, FILE_USE_FLOCK, 7, 11), 20);
    assert_int_equal(file_locks_holder(&locks, FILE_USE_FLOCK, 7, 21), 20);
    assert_int_equal(file_locks_holder(&locks, FILE_USE_FLOCK, 7, 20), 0); /* it waits for none of
                                                                              these locks */
    assert_int_equal(file_locks_holder(&locks, FILE_USE_FLOCK, 8, 11), 0);
    assert_int_equal(file_locks_holder(&locks, FILE_USE_POSIX_LOCK, 8, 11), 0); /* of no process */
    assert_int_equal(file_locks_holder(&locks, FILE_USE_FLOCK, 9, 31), 0);
    /* It waits for two of them. */
    assert_int_equal(file_locks_holder(&locks, FILE_USE_POSIX_LOCK, 50, 41), 0);
    /* A waiter's line without a lock before it. */
    assert_int_equal(file_locks_holder(&locks, FILE_USE_POSIX_LOCK, 61, 61), 0);
    file_locks_free(&locks);
}

static void test_of_this_machine(void **state)
{
    (void)state;
    char path[] = "/tmp/unit-lock-XXXXXX";
    struct stat status;
    pid_t holder = 0;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(fstat(fd, &status), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int own_fd = open(path, O_RDWR);
        _exit(flock(own_fd, LOCK_EX) ? 1 : 0);
    }
    while (!holder) {
        const struct timespec length = {0, 1000000};
        struct file_locks locks = {0};
        assert_int_equal(file_locks_read(&locks), 0);
        holder = file_locks_holder(&locks, FILE_USE_FLOCK, status.st_ino, child);
        file_locks_free(&locks);
        nanosleep(&length, NULL);
    }
    assert_int_equal(holder, getpid());
    flock(fd, LOCK_UN);
    assert_int_equal(waitpid(child, NULL, 0), child);
    unlink(path);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_holders),
        cmocka_unit_test(test_of_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
