/* Output files, on file systems with and without O_TMPFILE. */
#include "unit.h"
#include "cli/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define LONGEST_NAME 255 /* NAME_MAX of most file systems */

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, mode_t mode);

static bool lacks_unnamed_files;
static char directory[32];

int __wrap_open(const char *path, int flags, mode_t mode)
{
    if (lacks_unnamed_files && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_open(path, flags, mode);
}

/* Another user replaces the file with a link right after it was found to be writable. */
static const char *swapped_for;

int __wrap_access(const char *path, int mode)
{
    int err = __real_access(path, mode);
    if (swapped_for) {
        unlink(path);
        assert_int_equal(symlink(swapped_for, path), 0);
    }
    return err;
}

/* The number of files in the directory; *ret_name is one of them. */
static size_t count_files(char ret_name[LONGEST_NAME + 1])
{
    size_t count = 0;
    const struct dirent *entry;
    DIR *files = opendir(directory);
    assert_non_null(files);
    while ((entry = readdir(files))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(ret_name, LONGEST_NAME + 1, "%s", entry->d_name);
        count++;
    }
    closedir(files);
    return count;
}

static int set_up(void **state)
{
    lacks_unnamed_files = *state != NULL;
    snprintf(directory, sizeof directory, "/tmp/fgprof-unit-XXXXXX");
    umask(022);
    return !mkdtemp(directory) || chdir(directory);
}

static int tear_down(void **state)
{
    (void)state;
    char name[LONGEST_NAME + 1];
    while (count_files(name))
        unlink(name);
    return chdir("/") || rmdir(directory);
}

static void assert_file(const char *path, const char *text, mode_t mode)
{
    char name[LONGEST_NAME + 1];
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC, 0);
    assert_true(fd >= 0);
    char *contents = contents_of(fd, NULL);
    assert_string_equal(contents, text);
    free(contents);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_mode & 0777, mode);
    close(fd);
    assert_int_equal(count_files(name), 1);
}

static void write_file(const char *path, const char *text)
{
    struct output_file file;
    assert_int_equal(output_file_open(&file, path), 0);
    assert_int_equal(write(file.fd, text, strlen(text)), strlen(text));
    assert_int_equal(output_file_commit(&file), 0);
}

static void test_a_file_is_written_and_replaced(void **state)
{
    (void)state;
    char path[64];
    write_file("new", "one");
    assert_file("new", "one", 0644);
    assert_int_equal(chmod("new", 0640), 0);
    snprintf(path, sizeof path, "%s/new", directory);
    write_file(path, "two");
    assert_file("new", "two", 0640);
}

static void test_a_link_that_comes_meanwhile_is_not_followed(void **state)
{
    (void)state;
    struct output_file file;
    write_file("secret", "theirs");
    write_file("out", "old");
    swapped_for = "secret";
    assert_int_equal(output_file_open(&file, "out"), -ESTALE);
    swapped_for = NULL;
    assert_int_equal(unlink("out"), 0);
    assert_file("secret", "theirs", 0644);
}

static void test_where_no_file_can_be_made(void **state)
{
    (void)state;
    struct output_file file;
    assert_in_range(-output_file_open(&file, "/proc/self/comm"), 1, 200);
    assert_null(file.path); /* nothing is left to free */
    assert_int_equal(file.fd, -1);
}

static void test_the_longest_name_can_be_replaced(void **state)
{
    (void)state;
    char name[LONGEST_NAME + 1];
    memset(name, 'n', LONGEST_NAME);
    name[LONGEST_NAME] = '\0';
    write_file(name, "one");
    write_file(name, "two");
    assert_file(name, "two", 0644);
}

static void test_a_file_that_came_meanwhile_is_replaced(void **state)
{
    (void)state;
    struct output_file file;
    assert_int_equal(output_file_open(&file, "late"), 0);
    assert_int_equal(write(file.fd, "ours", 4), 4);
    int other = open("late", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(other >= 0);
    close(other);
    assert_int_equal(output_file_commit(&file), 0);
    assert_file("late", "ours", 0644);
}

static void test_an_abandoned_file_leaves_nothing(void **state)
{
    (void)state;
    struct output_file file;
    char name[LONGEST_NAME + 1];
    assert_int_equal(output_file_open(&file, "none"), 0);
    output_file_abandon(&file);
    assert_int_equal(count_files(name), 0);
}

static void test_a_failed_commit_leaves_nothing(void **state)
{
    (void)state;
    struct output_file file;
    char name[LONGEST_NAME + 1];
    assert_int_equal(output_file_open(&file, "taken"), 0);
    assert_int_equal(mkdir("taken", 0755), 0);
    assert_int_equal(output_file_commit(&file), -EISDIR);
    assert_int_equal(rmdir("taken"), 0);
    assert_int_equal(count_files(name), 0);
}

/* The file has no name while it is written, so nothing is left if we are killed. */
static void test_an_unfinished_file_has_no_name(void **state)
{
    (void)state;
    struct output_file file;
    char name[LONGEST_NAME + 1];
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        skip();
    close(fd);
    assert_int_equal(output_file_open(&file, "unfinished"), 0);
    assert_int_equal(count_files(name), 0);
    output_file_abandon(&file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_WITHOUT_UNNAMED(name)                                                                 \
    {                                                                                              \
#name "_under_a_name", name, set_up, tear_down, &lacks_unnamed_files                       \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_file_is_written_and_replaced),
        TEST(test_a_link_that_comes_meanwhile_is_not_followed),
        TEST(test_where_no_file_can_be_made),
        TEST(test_the_longest_name_can_be_replaced),
        TEST(test_a_file_that_came_meanwhile_is_replaced),
        TEST(test_an_abandoned_file_leaves_nothing),
        TEST(test_a_failed_commit_leaves_nothing),
        TEST(test_an_unfinished_file_has_no_name),
        TEST_WITHOUT_UNNAMED(test_a_file_is_written_and_replaced),
        TEST_WITHOUT_UNNAMED(test_the_longest_name_can_be_replaced),
        TEST_WITHOUT_UNNAMED(test_a_file_that_came_meanwhile_is_replaced),
        TEST_WITHOUT_UNNAMED(test_an_abandoned_file_leaves_nothing),
        TEST_WITHOUT_UNNAMED(test_a_failed_commit_leaves_nothing),
    };
    return cmocka_run_group_tests_name("output_file", tests, NULL, NULL);
}
