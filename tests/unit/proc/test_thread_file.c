#include "unit.h"
#include "proc/thread_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define KEEP INT_MAX /* keep any descriptor, however high its number */

/* A directory like /proc/PID, with one file of one thread. */
struct directory {
    char path[64], thread[96], file[128];
    int fd;
};

static struct directory make_directory(const char *text)
{
    struct directory directory = {.path = "/tmp/unit-thread-XXXXXX"};
    char task[80];
    assert_non_null(mkdtemp(directory.path));
    snprintf(task, sizeof task, "%s/task", directory.path);
    snprintf(directory.thread, sizeof directory.thread, "%s/12", task);
    snprintf(directory.file, sizeof directory.file, "%s/comm", directory.thread);
    assert_int_equal(mkdir(task, 0700), 0);
    assert_int_equal(mkdir(directory.thread, 0700), 0);
    int fd = open(directory.file, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    directory.fd = open(directory.path, O_PATH | O_DIRECTORY);
    assert_true(directory.fd >= 0);
    return directory;
}

static void remove_directory(struct directory *directory)
{
    close(directory->fd);
    unlink(directory->file);
    rmdir(directory->thread);
    *strrchr(directory->thread, '/') = '\0';
    rmdir(directory->thread);
    rmdir(directory->path);
}

static void test_reads_again_what_it_keeps_open(void **state)
{
    (void)state;
    struct directory directory = make_directory("first");
    struct thread_file file = {0};
    char text[16];
    assert_int_equal(thread_file_read(&file, directory.fd, 12, "comm", KEEP, text, sizeof text), 5);
    assert_string_equal(text, "first");
    int fd = open(directory.file, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, "2nd", 3), 3);
    close(fd);
    unlink(directory.file); /* must not be opened again */
    assert_int_equal(thread_file_read(&file, directory.fd, 12, "comm", KEEP, text, sizeof text), 3);
    assert_string_equal(text, "2nd");
    int kept = file.fd_plus_1 - 1;
    assert_true(fcntl(kept, F_GETFD) & FD_CLOEXEC);
    thread_file_close(&file);
    assert_int_equal(fcntl(kept, F_GETFD), -1);
    assert_int_equal(file.fd_plus_1, 0);
    thread_file_close(&file);
    remove_directory(&directory);
}

static void test_what_does_not_fit_is_cut(void **state)
{
    (void)state;
    struct directory directory = make_directory("0123456789");
    struct thread_file file = {0};
    char text[8];
    memset(text, 'x', sizeof text);
    assert_int_equal(thread_file_read(&file, directory.fd, 12, "comm", KEEP, text, 5), 4);
    assert_string_equal(text, "0123");
    assert_int_equal(text[5], 'x');
    thread_file_close(&file);
    remove_directory(&directory);
}

static void test_no_such_thread(void **state)
{
    (void)state;
    struct directory directory = make_directory("text");
    struct thread_file file = {0};
    char text[8];
    assert_int_equal(thread_file_read(&file, directory.fd, 13, "comm", KEEP, text, sizeof text),
                     -ENOENT);
    assert_int_equal(file.fd_plus_1, 0);
    assert_int_equal(thread_file_read(&file, directory.fd, 12, "comm", KEEP, text, sizeof text), 4);
    thread_file_close(&file);
    remove_directory(&directory);
}

static void test_high_descriptors_are_not_kept(void **state)
{
    (void)state;
    struct directory directory = make_directory("text");
    struct thread_file file = {0};
    char text[8];
    int lowest = dup(directory.fd);
    close(lowest);
    for (size_t i = 0; i < 2; i++) {
        memset(text, 'x', sizeof text);
        assert_int_equal(
            thread_file_read(&file, directory.fd, 12, "comm", lowest, text, sizeof text), 4);
        assert_string_equal(text, "text");
        assert_int_equal(file.fd_plus_1, 0);
        assert_int_equal(fcntl(lowest, F_GETFD), -1);
    }
    assert_int_equal(
        thread_file_read(&file, directory.fd, 12, "comm", lowest + 1, text, sizeof text), 4);
    assert_int_equal(file.fd_plus_1, lowest + 1);
    thread_file_close(&file);
    remove_directory(&directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_again_what_it_keeps_open),
        cmocka_unit_test(test_what_does_not_fit_is_cut),
        cmocka_unit_test(test_no_such_thread),
        cmocka_unit_test(test_high_descriptors_are_not_kept),
    };
    return cmocka_run_group_tests_name("thread_file", tests, NULL, NULL);
}
