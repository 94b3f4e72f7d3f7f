#include "unit.h"
#include "proc/procfs.h"

#include <sys/auxv.h>
#include <sys/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* The fields after the name in a real line: flags are 4194560 and the start time is 9056. */
#define FIELDS                                                                                     \
    " S 1 1234 1234 0 -1 4194560 177 0 0 0 2 3 0 0 20 0 3 0 9056 5627904 386 "                     \
    "18446744073709551615 "                                                                        \
    "1 1 0 0 0 0 0 4096 65536 1 0 0 17 1 50 2 0 0 0 0 0 0 0 0 0 0 0\n"

static void assert_parses(const char *line)
{
    struct proc_stat stat = {0};
    assert_true(procfs_parse_stat(line, &stat));
    assert_int_equal(stat.state, 'S');
    assert_int_equal(stat.flags, 4194560);
    assert_int_equal(stat.start_tick, 9056);
    assert_int_equal(stat.cpu, 1);
    assert_int_equal(stat.policy, SCHED_RR);
}

static void test_stat_line(void **state)
{
    (void)state;
    assert_parses("1234 (sleep)" FIELDS);
}

static void test_stat_name_may_hold_anything(void **state)
{
    (void)state;
    assert_parses("1234 (tmux: server)" FIELDS);
    assert_parses("1234 (a) name)" FIELDS);
    assert_parses("1234 (x) R 1 2 3 4 5 6 7)" FIELDS);
    assert_parses("1234 ())" FIELDS);
    assert_parses("1234 ()" FIELDS);
    assert_parses("1234 (a\nb)" FIELDS);
}

static void test_stat_keeps_the_whole_start(void **state)
{
    (void)state;
    struct proc_stat stat;
    assert_true(procfs_parse_stat("7 (k) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 "
                                  "18446744073709551614 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3 0 0",
                                  &stat));
    assert_int_equal(stat.state, 'I');
    assert_int_equal(stat.flags, 69238880);
    assert_true(stat.start_tick == 18446744073709551614ull);
}

static void test_a_child_without_a_program(void **state)
{
    (void)state;
    struct proc_stat stat;
    char path[32];
    assert_int_equal(procfs_stat(AT_FDCWD, "/proc/self/stat", &stat), 0);
    assert_false(proc_stat_is_only_forked(&stat));
    pid_t child = fork();
    if (!child)
        pause();
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    assert_int_equal(procfs_stat(AT_FDCWD, path, &stat), 0);
    assert_true(proc_stat_is_only_forked(&stat));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void test_stat_refuses_short_lines(void **state)
{
    (void)state;
    static const char whole[] = "1 (a) S 1 1 1 0 -1 256 0 0 0 0 2 3 0 0 20 0 3 0 9 1 2 3 4 5 6 7 8 "
                                "9 10 11 12 13 14 15 16 7 0 1";
    struct proc_stat stat = {'q', 4, 1, 2, 3, 5};
    char line[sizeof whole];
    assert_true(procfs_parse_stat(whole, &stat));
    assert_int_equal(stat.parent, 1);
    assert_int_equal(stat.start_tick, 9);
    assert_int_equal(stat.cpu, 7);
    assert_int_equal(stat.policy, SCHED_FIFO);
    stat = (struct proc_stat){'q', 4, 1, 2, 3, 5};
    for (size_t length = 0; length < sizeof whole - 1; length++) {
        memcpy(line, whole, length);
        line[length] = '\0';
        assert_false(procfs_parse_stat(line, &stat));
    }
    /* The result is unchanged. */
    assert_int_equal(stat.state, 'q');
    assert_int_equal(stat.flags, 1);
    assert_int_equal(stat.start_tick, 2);
    assert_int_equal(stat.cpu, 3);
    assert_int_equal(stat.policy, 5);
    assert_false(procfs_parse_stat("no name at all 1 2 3 4 5 6 7 8 9", &stat));
}

static const char status[] = "Name:\tTracerPid:\t5\n"
                             "State:\tS (sleeping)\n"
                             "Tgid:\t4711\n"
                             "NStgid:\t4711\t12\n"
                             "TracerPid:\t99\n"
                             "Huge:\t4294967296\n"
                             "Threads:\t3\n";

static void test_status_number(void **state)
{
    (void)state;
    assert_int_equal(procfs_status_number(status, "Tgid:"), 4711);
    assert_int_equal(procfs_status_number(status, "NStgid:"), 4711);
    assert_int_equal(procfs_status_number(status, "Threads:"), 3);
    assert_int_equal(procfs_status_number(status, "Huge:"), 4294967296);
}

static void test_status_key_counts_at_the_start_of_a_line_only(void **state)
{
    (void)state;
    /* The target chooses its name, so the name must not be mistaken for a field. */
    assert_int_equal(procfs_status_number(status, "TracerPid:"), 99);
    assert_int_equal(procfs_status_number(status, "Pid:"), -1);
    assert_int_equal(procfs_status_number(status, "tgid:"), -1);
}

static void test_status_without_the_key(void **state)
{
    (void)state;
    assert_int_equal(procfs_status_number("", "Tgid:"), -1);
    assert_int_equal(procfs_status_number("\n\n", "Tgid:"), -1);
    assert_int_equal(procfs_status_number("Tg", "Tgid:"), -1);
    assert_int_equal(procfs_status_number(status, "Uid:"), -1);
}

static void test_read_cuts_and_ends_with_nul(void **state)
{
    (void)state;
    char directory[] = "/tmp/unit-procfs-XXXXXX", path[64], buffer[8];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/text", directory);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, "0123456789", 10), 10);
    close(fd);
    int dir_fd = open(directory, O_PATH | O_DIRECTORY);

    memset(buffer, 'x', sizeof buffer);
    assert_int_equal(procfs_read(dir_fd, "text", buffer, sizeof buffer), 7);
    assert_string_equal(buffer, "0123456");
    assert_int_equal(procfs_read(dir_fd, "text", buffer, 1), 0);
    assert_string_equal(buffer, "");
    assert_int_equal(procfs_read(dir_fd, "none", buffer, sizeof buffer), -ENOENT);
    assert_int_equal(procfs_read(dir_fd, ".", buffer, sizeof buffer), -EISDIR);

    close(dir_fd);
    unlink(path);
    rmdir(directory);
}

static void test_stat_of_this_process(void **state)
{
    (void)state;
    struct proc_stat stat;
    int dir_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    assert_true(dir_fd >= 0);
    assert_int_equal(procfs_stat(dir_fd, "stat", &stat), 0);
    assert_int_equal(stat.state, 'R');
    assert_true(stat.start_tick > 0);
    assert_int_equal(procfs_stat(dir_fd, "task/0/stat", &stat), -ENOENT);
    assert_int_equal(procfs_stat(dir_fd, "comm", &stat), -ESRCH);
    close(dir_fd);
}

static void test_ids_in_namespaces(void **state)
{
    (void)state;
    pid_t ids[PID_NAMESPACES_MAX];
    assert_int_equal(procfs_parse_namespace_ids("Name:\tx\nNSpid:\t1234\t12\t5\nNSpgid:\t1\n", ids),
                     3);
    assert_int_equal(ids[0], 1234);
    assert_int_equal(ids[1], 12);
    assert_int_equal(ids[2], 5);
    assert_int_equal(procfs_parse_namespace_ids("Name:\tx\nNSpid:\t7\n", ids), 1);
    assert_int_equal(procfs_parse_namespace_ids("Name:\tx\nPid:\t7\n", ids), 0);
    assert_int_equal(procfs_parse_namespace_ids("Name:\tx\nNSpid:\t99999999999\n", ids), 0);
}

static bool is_secure_by(int folder, const uint64_t *words, size_t count)
{
    int fd = openat(folder, "auxv", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, words, count * sizeof *words), count * sizeof *words);
    close(fd);
    return procfs_is_secure(folder);
}

static void test_more_rights_than_its_user(void **state)
{
    (void)state;
    char path[] = "/tmp/fgprof-unit-XXXXXX";
    const uint64_t secure[] = {AT_PAGESZ, 4096, AT_SECURE, 1, AT_NULL, 0};
    const uint64_t plain[] = {AT_PAGESZ, AT_SECURE, AT_SECURE, 0, AT_NULL, 0};
    const uint64_t after_end[] = {AT_NULL, 0, AT_SECURE, 1};
    assert_non_null(mkdtemp(path));
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    assert_false(procfs_is_secure(folder));
    assert_true(is_secure_by(folder, secure, 6));
    assert_false(is_secure_by(folder, secure, 3));
    assert_false(is_secure_by(folder, plain, 6));
    assert_false(is_secure_by(folder, after_end, 4));
    assert_false(is_secure_by(folder, plain, 0));
    unlinkat(folder, "auxv", 0);
    close(folder);
    rmdir(path);
    folder = open("/proc/self", O_RDONLY | O_DIRECTORY);
    assert_int_equal(procfs_is_secure(folder), getauxval(AT_SECURE));
    close(folder);
}

static void test_clock_offsets(void **state)
{
    (void)state;
    struct clock_offsets offsets = procfs_parse_clock_offsets(
        "monotonic        -86400         0\nboottime           3   500000000\n");
    assert_int_equal(offsets.monotonic_ns, (uint64_t)-86400000000000);
    assert_int_equal(offsets.boot_ns, 3500000000);
    offsets = procfs_parse_clock_offsets("");
    assert_int_equal(offsets.monotonic_ns, 0);
    assert_int_equal(offsets.boot_ns, 0);
    offsets = procfs_parse_clock_offsets("other 1 2\nboottime 1 0\nmonotonic x");
    assert_int_equal(offsets.monotonic_ns, 0);
    assert_int_equal(offsets.boot_ns, 1000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat_line),
        cmocka_unit_test(test_stat_name_may_hold_anything),
        cmocka_unit_test(test_stat_keeps_the_whole_start),
        cmocka_unit_test(test_a_child_without_a_program),
        cmocka_unit_test(test_stat_refuses_short_lines),
        cmocka_unit_test(test_status_number),
        cmocka_unit_test(test_status_key_counts_at_the_start_of_a_line_only),
        cmocka_unit_test(test_status_without_the_key),
        cmocka_unit_test(test_read_cuts_and_ends_with_nul),
        cmocka_unit_test(test_stat_of_this_process),
        cmocka_unit_test(test_ids_in_namespaces),
        cmocka_unit_test(test_more_rights_than_its_user),
        cmocka_unit_test(test_clock_offsets),
    };
    return cmocka_run_group_tests_name("procfs", tests, NULL, NULL);
}
