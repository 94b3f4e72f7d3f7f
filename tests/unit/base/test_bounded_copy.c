#include "unit.h"
#include "base/bounded_copy.h"

#include <errno.h>
#include <sys/stat.h>

#define MS 1000000u

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

static void test_why_there_is_none(void **state)
{
    (void)state;
    uint64_t wait_ns = 60000ull * MS;
    int dir_fd = root();
    assert_int_equal(bounded_copy(open_name, (char *)"no such file", dir_fd, &wait_ns), -ENOENT);
    assert_int_equal(bounded_copy(open_large, NULL, dir_fd, &wait_ns), -EFBIG);
    close(dir_fd);
}

/* The time waited is subtracted until none is left. The abandoned process keeps none of our files
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
    close(ends[0]);
    close(dir_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_copy_is_whole),
        cmocka_unit_test(test_why_there_is_none),
        cmocka_unit_test(test_what_never_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
