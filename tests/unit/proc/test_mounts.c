#include "unit.h"
#include "proc/mounts.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* A directory with a mountinfo file. */
static int make_process(const char *mounts)
{
    char directory[] = "/tmp/unit-mounts-XXXXXX";
    assert_non_null(mkdtemp(directory));
    int proc_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(proc_fd >= 0);
    int fd = openat(proc_fd, "mountinfo", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, mounts, strlen(mounts)), strlen(mounts));
    close(fd);
    return proc_fd;
}

static void end_process(int proc_fd)
{
    char link[64], path[64] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", proc_fd);
    assert_true(readlink(link, path, sizeof path - 1) > 0);
    unlinkat(proc_fd, "mountinfo", 0);
    rmdir(path);
    close(proc_fd);
}

/* Device numbers that no file system of this machine has. */
static const char mounts[] =
    "20 1 0:4000001 / / rw - btrfs /dev/sda rw\n"
    "this is no line\n"
    "21 20 0:4000002 / /home rw,nosuid shared:1 - fuse.sshfs host: rw,user_id=0\n"
    "22 20 0:4000003 / /mnt rw,nosuid - fuse stuck rw,user_id=0\n"
    "23 20 0:4000004 / /win rw,nosuid - fuseblk /dev/sdb rw,user_id=0\n"
    "24 22 0:4000005 / /mnt/deep rw - tmpfs none rw\n"
    "25 22 0:4000006 / /home rw - tmpfs none rw\n";

static void test_devices(void **state)
{
    (void)state;
    int proc_fd = make_process(mounts);
    static const bool hangs[] = {false, true, true, false, false, false};
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(mounts_may_hang(proc_fd, 0, 4000001 + i), hangs[i]);
    assert_true(mounts_may_hang(proc_fd, 0, 4000099)); /* mounted nowhere */
    assert_false(mounts_may_hang(proc_fd, 8, 4000002));
    end_process(proc_fd);
}

/* A device that is mounted for this process but not for the other. */
static void test_a_device_of_ours(void **state)
{
    (void)state;
    struct stat status;
    int proc_fd = make_process("");
    assert_int_equal(stat("/proc", &status), 0);
    assert_int_equal(major(status.st_dev), 0);
    assert_false(mounts_may_hang(proc_fd, 0, minor(status.st_dev)));
    end_process(proc_fd);
}

/* It is mounted nowhere, but never hangs. */
static void test_shared_memory(void **state)
{
    (void)state;
    static const unsigned flags[] = {0, MFD_HUGETLB};
    struct stat status;
    int proc_fd = make_process("");
    for (size_t i = 0; i < 2; i++) {
        int fd = memfd_create("unit", MFD_CLOEXEC | flags[i]);
        if (fd < 0 && i)
            continue; /* the machine has no huge pages */
        assert_int_equal(fstat(fd, &status), 0);
        unsigned number = minor(status.st_dev);
        assert_int_equal(major(status.st_dev), 0);
        assert_true(mounts_is_shared_memory(0, number));
        assert_false(mounts_is_shared_memory(8, number));
        assert_false(mounts_may_hang(proc_fd, 0, number));
        close(fd);
    }
    assert_int_equal(stat("/proc", &status), 0);
    assert_false(mounts_is_shared_memory(0, minor(status.st_dev)));
    end_process(proc_fd);
}

static void test_directories(void **state)
{
    (void)state;
    int proc_fd = make_process(mounts);
    assert_false(mounts_may_hang_at(proc_fd, "/tmp"));
    assert_true(mounts_may_hang_at(proc_fd, "/mnt"));
    assert_true(mounts_may_hang_at(proc_fd, "/mnt/tmp"));
    assert_false(mounts_may_hang_at(proc_fd, "/mnttmp"));
    assert_false(mounts_may_hang_at(proc_fd, "/mnt/deep/tmp"));
    assert_false(mounts_may_hang_at(proc_fd, "/home")); /* covered by another mount */
    end_process(proc_fd);
    proc_fd = make_process("20 1 0:33 / / rw - fuse.x x rw\n");
    assert_true(mounts_may_hang_at(proc_fd, "/tmp"));
    end_process(proc_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_a_device_of_ours),
        cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
