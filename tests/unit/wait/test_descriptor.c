#include "unit.h"
#include "wait/open_files.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/syscall.h>

static struct descriptor_info info_of(const char *const *lines, size_t count)
{
    struct descriptor_info info = {.polled.fd = -1};
    for (size_t i = 0; i < count; i++)
        descriptor_info_add_line(&info, lines[i]);
    return info;
}

static void test_lines(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "pos:\t0\n",
        "flags:\t02000001\n",
        "mnt_id:\t27\n",
        "ino:\t10953261\n",
        "lock:\t1: FLOCK  ADVISORY  WRITE 15864 fe:00:10953261 0 EOF\n",
        "lock:\t2: OFDLCK ADVISORY  WRITE -1 fe:00:10953261 0 9\n",
        "tfd:        7 events:       1c data:                7  pos:0 ino:64 sdev:e\n",
        "tfd:        9 events:       19 data:                9  pos:0 ino:65 sdev:e\n",
    };
    struct descriptor_info info = info_of(lines, sizeof lines / sizeof *lines);
    assert_false(info.is_readable);
    assert_true(info.is_writable);
    assert_int_equal(info.inode, 10953261);
    assert_int_equal(info.locks, 1u << FILE_USE_FLOCK | 1u << FILE_USE_OFD_LOCK);
    assert_int_equal(info.polled_count, 2);
    assert_int_equal(info.polled.fd, 7);
    assert_int_equal(info.polled.use, FILE_USE_WRITE);
    assert_int_equal(info.process_id, 0);
    static const char *const of_pidfd[] = {"flags:\t02000002\n", "Pid:\t1234\n"};
    info = info_of(of_pidfd, 2);
    assert_true(info.is_readable && info.is_writable);
    assert_int_equal(info.process_id, 1234);
    static const char *const odd[] = {"flags:\tx\n", "ino:\n", "Pid:\t-1\n", "tfd: x events: 1\n",
                                      "lock:\tx\n",  "",       "\n"};
    info = info_of(odd, sizeof odd / sizeof *odd);
    assert_false(info.is_readable || info.is_writable || info.inode || info.locks);
    assert_int_equal(info.process_id, 0);
    assert_int_equal(info.polled_count, 0);
}

static struct descriptor_info read_info(int fd)
{
    struct descriptor_info info;
    int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    assert_int_equal(descriptor_info_read(proc_fd, fd, &info), 0);
    assert_int_equal(descriptor_info_read(proc_fd, 0x7fffffff, &info), -ENOENT);
    assert_int_equal(descriptor_info_read(proc_fd, fd, &info), 0);
    close(proc_fd);
    return info;
}

static void test_of_this_process(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct descriptor_info info = read_info(ends[0]);
    assert_true(info.is_readable && !info.is_writable);
    info = read_info(ends[1]);
    assert_true(!info.is_readable && info.is_writable);
    int epoll_fd = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    assert_int_equal(read_info(epoll_fd).polled_count, 0);
    assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ends[0], &event), 0);
    info = read_info(epoll_fd);
    assert_int_equal(info.polled_count, 1);
    assert_int_equal(info.polled.fd, ends[0]);
    assert_int_equal(info.polled.use, FILE_USE_READ);
    int pid_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (pid_fd >= 0) {
        assert_int_equal(read_info(pid_fd).process_id, getpid());
        close(pid_fd);
    }
    close(epoll_fd);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_of_this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
