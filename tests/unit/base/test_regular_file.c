/* Opening files below another root, with openat2 and where it is missing or refused. */
#include "unit.h"

#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[] = "/tmp/fgprof-root-XXXXXX";
static int root_fd;

static void make_file(const char *path, const char *text)
{
    int fd = openat(root_fd, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(root_fd, "tmp", 0700), 0);
    assert_int_equal(mkdirat(root_fd, "tmp/inner", 0700), 0);
    make_file("top", "top");
    make_file("tmp/map", "map");
    make_file("tmp/inner/file", "file");
    assert_int_equal(symlinkat("map", root_fd, "tmp/link"), 0);
    assert_int_equal(symlinkat("/tmp/inner", root_fd, "absolute"), 0);
    assert_int_equal(symlinkat("../../../../top", root_fd, "tmp/inner/out"), 0);
    assert_int_equal(symlinkat("circle", root_fd, "circle"), 0);
    assert_int_equal(symlinkat("/etc/passwd", root_fd, "outside"), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const files[] = {"top",      "tmp/map",       "tmp/inner/file", "tmp/link",
                                        "absolute", "tmp/inner/out", "circle",         "outside"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlinkat(root_fd, files[i], 0);
    unlinkat(root_fd, "tmp/inner", AT_REMOVEDIR);
    unlinkat(root_fd, "tmp", AT_REMOVEDIR);
    close(root_fd);
    rmdir(root);
    return 0;
}

static const struct {
    const char *path;
    bool follows_last;
    const char *text; /* NULL: it fails, with: */
    int err;
} cases[] = {
    {"top", true, "top", 0},
    {"/tmp//./map", false, "map", 0},
    {"tmp/link", true, "map", 0},
    {"tmp/link", false, NULL, -ENOEXEC},
    {"absolute/file", true, "file", 0},
    {"absolute/../map", true, "map", 0},
    {"tmp/inner/out", true, "top", 0},
    {"../../tmp/../top", true, "top", 0},
    {"tmp/./../top", true, "top", 0},
    {"circle", true, NULL, -ELOOP},
    {"outside", true, NULL, -ENOENT},
    {"top/file", true, NULL, -ENOTDIR},
    {"tmp/none", true, NULL, -ENOENT},
    {"tmp", true, NULL, -ENOEXEC},
};

/* The number of the first wrong case, from 1 on; 0: none. */
static int check_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[16] = "";
        int fd = open_regular_file_in_root(root_fd, cases[i].path, cases[i].follows_last);
        bool is_right = cases[i].text ? fd >= 0 && read(fd, text, sizeof text - 1) > 0 &&
                                            strcmp(text, cases[i].text) == 0
                                      : fd == cases[i].err;
        if (fd >= 0)
            close(fd);
        if (!is_right)
            return (int)i + 1;
    }
    int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = open_regular_file_in_root(proc_fd, "self/exe", true);
    close(proc_fd);
    return fd < 0 ? 0 : -1;
}

/* From now on openat2 fails with this error. */
static bool refuse_openat2(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           syscall(SYS_openat2, -1, "", NULL, 0) == -1 && errno == error;
}

static void test_in_root(void **state)
{
    (void)state;
    assert_int_equal(check_cases(), 0);
}

static void check_refused(int error)
{
    int status;
    pid_t child = fork();
    if (!child)
        _exit(refuse_openat2(error) ? (uint8_t)check_cases() : 200);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_in_root_without_openat2(void **state)
{
    (void)state;
    check_refused(ENOSYS);
    check_refused(EPERM);
}

/* They count as regular files, but /proc/kmsg, for one, waits for messages and takes them. */
static void test_files_of_the_kernel(void **state)
{
    (void)state;
    assert_int_equal(open_regular_file(AT_FDCWD, "/proc/self/maps", 0), -ENOEXEC);
    assert_int_equal(open_regular_file(AT_FDCWD, "/proc/kmsg", 0), -ENOEXEC);
    assert_int_equal(open_regular_file(AT_FDCWD, "/sys/kernel/uevent_seqnum", 0), -ENOEXEC);
    assert_int_equal(symlinkat("/proc/self/maps", root_fd, "maps"), 0);
    assert_int_equal(open_regular_file(root_fd, "maps", 0), -ENOEXEC);
    unlinkat(root_fd, "maps", 0);
    /* A link in /proc to a file elsewhere leads there. */
    int fd = open_regular_file(AT_FDCWD, "/proc/self/exe", 0);
    assert_true(fd >= 0);
    close(fd);
}

/* Whoever opens such a file waits until its holder gives the lease up, or 45 seconds. */
static void test_a_leased_file_is_not_waited_for(void **state)
{
    (void)state;
    signal(SIGIO, SIG_IGN); /* tells the holder, which is this process */
    int holder = openat(root_fd, "top", O_RDONLY | O_CLOEXEC);
    if (fcntl(holder, F_SETLEASE, F_WRLCK))
        skip(); /* not every file system has leases */
    alarm(20);
    assert_int_equal(open_regular_file(root_fd, "top", O_NONBLOCK), -EAGAIN);
    assert_int_equal(open_regular_file_in_root(root_fd, "top", true), -EAGAIN);
    assert_int_equal(fcntl(holder, F_SETLEASE, F_UNLCK), 0);
    int fd = open_regular_file(root_fd, "top", O_NONBLOCK);
    assert_true(fd >= 0);
    assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
    alarm(0);
    close(fd);
    close(holder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_root),
        cmocka_unit_test(test_in_root_without_openat2),
        cmocka_unit_test(test_files_of_the_kernel),
        cmocka_unit_test(test_a_leased_file_is_not_waited_for),
    };
    return cmocka_run_group_tests_name("regular_file", tests, set_up, tear_down);
}
