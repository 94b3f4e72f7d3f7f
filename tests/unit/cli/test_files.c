/* The files of the flight recorder. */
#include "make_profile.h"
#include "cli/record/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define NOON 1763899200 /* 2025-11-23, 12:00 UTC */

int __wrap_fgprof_profile_write(const fgprof_profile *profile, enum fgprof_format format, int fd);
int __real_fgprof_profile_write(const fgprof_profile *profile, enum fgprof_format format, int fd);

/* How many more writes fail, with a full disk or an exceeded quota. */
static unsigned times_full;

int __wrap_fgprof_profile_write(const fgprof_profile *profile, enum fgprof_format format, int fd)
{
    if (!times_full)
        return __real_fgprof_profile_write(profile, format, fd);
    times_full--;
    return times_full % 2 ? -EDQUOT : -ENOSPC;
}

static char directory[] = "/tmp/fgprof-files-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    strcpy(directory + sizeof directory - 7, "XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    DIR *listed = opendir(directory);
    const struct dirent *entry;
    while (listed && (entry = readdir(listed)))
        unlinkat(dirfd(listed), entry->d_name,
                 unlinkat(dirfd(listed), entry->d_name, 0) ? AT_REMOVEDIR : 0);
    closedir(listed);
    return rmdir(directory);
}

static struct files files_of(size_t max)
{
    return (struct files){.directory = directory, .format = FGPROF_RAW, .max = max};
}

static void assert_path(struct files *files, const char *process, pid_t pid, time_t now,
                        const char *expected)
{
    char *path = files_path(files, process, pid, now), *whole;
    assert_int_not_equal(asprintf(&whole, "%s/%s", directory, expected), -1);
    assert_string_equal(path, whole);
    free(path);
    free(whole);
}

static void make(const char *name)
{
    DIR *listed = opendir(directory);
    int fd = openat(dirfd(listed), name, O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    closedir(listed);
}

static bool is_there(const char *name)
{
    DIR *listed = opendir(directory);
    struct stat status;
    bool there = !fstatat(dirfd(listed), name, &status, AT_SYMLINK_NOFOLLOW);
    closedir(listed);
    return there;
}

static void test_names(void **state)
{
    (void)state;
    struct files files = files_of(20);
    assert_path(&files, "redis-server", 12, NOON, "fgprof-redis-server-12-20251123T120000Z.fgprof");
    assert_path(&files, "../a b\n%\xff", 1, NOON + 1,
                "fgprof-..%2fa%20b%0a%25%ff-1-20251123T120001Z.fgprof");
    assert_path(&files, "", 1, 0, "fgprof--1-19700101T000000Z.fgprof");
    files.format = FGPROF_PPROF;
    assert_path(&files, "x", 1, NOON, "fgprof-x-1-20251123T120000Z.pb.gz");
    files.format = FGPROF_SPEEDSCOPE;
    assert_path(&files, "x", 1, NOON + 1, "fgprof-x-1-20251123T120001Z.speedscope.json");
}

/* Nothing that exists is replaced. */
static void test_several_in_a_second(void **state)
{
    (void)state;
    struct files files = files_of(20);
    make("fgprof-x-1-20251123T120000Z.fgprof");
    assert_path(&files, "x", 1, NOON, "fgprof-x-1-20251123T120000Z-1.fgprof");
    DIR *listed = opendir(directory);
    assert_int_equal(symlinkat("nowhere", dirfd(listed), "fgprof-x-1-20251123T120000Z-1.fgprof"),
                     0);
    closedir(listed);
    assert_path(&files, "x", 1, NOON, "fgprof-x-1-20251123T120000Z-2.fgprof");
    assert_path(&files, "x", 1, NOON, "fgprof-x-1-20251123T120000Z-3.fgprof"); /* as if one had been
                                                                                  written */
    assert_path(&files, "x", 1, NOON + 1, "fgprof-x-1-20251123T120001Z.fgprof");
    assert_path(&files, "x", 2, NOON, "fgprof-x-2-20251123T120000Z.fgprof");
}

static void test_the_oldest_go(void **state)
{
    (void)state;
    /* Oldest first. */
    static const char *const names[] = {
        "fgprof-z-1-20241231T235959Z.fgprof",     "fgprof-a-1-20251123T120000Z.fgprof",
        "fgprof-a-1-20251123T120000Z-2.html",     "fgprof-a-1-20251123T120000Z-10.fgprof",
        "fgprof-%ff-1-20251123T120001Z.pb.gz",    "fgprof-b-77-20251124T000000Z.folded",
        "fgprof-c-d-77-20251125T000000Z.report",  "fgprof--1-20251126T000000Z.speedscope.json",
        "fgprof-1-2-1-20251127T000000Z-1.fgprof",
    };
    const size_t count = sizeof names / sizeof *names;
    for (size_t i = 0; i < count; i++)
        make(names[count - 1 - i]); /* the modification times are in reverse order */
    for (size_t max = count; max > 0; max--) {
        const struct files files = files_of(max);
        assert_int_equal(files_remove_oldest(&files, NULL), 0);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(is_there(names[i]), i >= count - max);
    }
    const struct files files = files_of(1);
    make(names[0]);
    assert_int_equal(files_remove_oldest(&files, names[0]),
                     0); /* just written, by the name's clock */
    assert_true(is_there(names[0]));
    assert_false(is_there(names[count - 1]));
}

static void test_nothing_else_goes(void **state)
{
    (void)state;
    static const char *const others[] = {
        "fgprof-x-1-20251123T120000Z.fgprof.bak",
        "my-fgprof-x-1-20251123T120000Z.fgprof",
        "fgprof-x-1-20251123T120000.fgprof",
        "fgprof-x-20251123T120000Z.fgprof",
        "fgprof-x-1-20251123120000Z.fgprof",
        "fgprof-x-1-20251123T120000Z-.fgprof",
        "fgprof-x-1-20251123T120000Z",
        "fgprof-x y-1-20251123T120000Z.fgprof",
        "fgprof-x-1-20251123T120000Z.txt2",
        "fgprof-x-1-20251123T120000Z-1-2.fgprof",
        ".fgprof-x-1-20251123T120000Z.fgprof.AbC",
        "fgprof-x-1-20251123T120000Z.pprof",
    };
    const size_t count = sizeof others / sizeof *others;
    const struct files files = files_of(1);
    for (size_t i = 0; i < count; i++)
        make(others[i]);
    DIR *listed = opendir(directory);
    assert_int_equal(symlinkat(others[0], dirfd(listed), "fgprof-x-1-20001123T120000Z.fgprof"), 0);
    assert_int_equal(mkdirat(dirfd(listed), "fgprof-x-2-20001123T120000Z.fgprof", 0700), 0);
    closedir(listed);
    make("fgprof-x-3-20011123T120000Z.fgprof");
    make("fgprof-x-3-20021123T120000Z.fgprof");
    assert_int_equal(files_remove_oldest(&files, NULL), 0);
    for (size_t i = 0; i < count; i++)
        assert_true(is_there(others[i]));
    assert_true(is_there("fgprof-x-1-20001123T120000Z.fgprof"));
    assert_true(is_there("fgprof-x-2-20001123T120000Z.fgprof"));
    assert_false(is_there("fgprof-x-3-20011123T120000Z.fgprof"));
    assert_true(is_there("fgprof-x-3-20021123T120000Z.fgprof"));
}

static void test_a_directory_that_is_gone(void **state)
{
    (void)state;
    const struct files files = {.directory = "/nowhere/at/all", .format = FGPROF_RAW, .max = 1};
    assert_int_equal(files_remove_oldest(&files, NULL), -ENOENT);
    assert_false(files_check(files.directory));
    assert_false(files_check("/dev/null"));
    assert_true(files_check(directory));
}

static void test_written_files(void **state)
{
    (void)state;
    struct files files = files_of(2);
    struct fgprof_profile *profile = make_profile();
    make("fgprof-x-1-20011123T120000Z.fgprof");
    assert_int_equal(fgprof_profile_set_reason(profile, "test"), 0);
    for (size_t i = 1; i <= 3; i++) {
        assert_true(files_write(&files, profile, "x", 1));
        assert_int_equal(files.written, i);
        assert_int_equal(is_there("fgprof-x-1-20011123T120000Z.fgprof"), i == 1);
    }
    files.directory = "/nowhere/at/all";
    for (int i = 0; i < 2; i++) {
        assert_false(files_write(&files, profile, "x", 1));
        assert_int_equal(files.failure, -ENOENT); /* reported once */
    }
    files.directory = directory;
    assert_true(files_write(&files, profile, "x", 1));
    assert_int_equal(files.failure, 0);
    assert_int_equal(files.written, 4);
    fgprof_profile_free(profile);
}

static void test_a_full_disk(void **state)
{
    (void)state;
    static const char *const names[] = {
        "fgprof-x-1-20011123T120000Z.fgprof", "fgprof-x-1-20021123T120000Z.fgprof",
        "fgprof-x-1-20031123T120000Z.fgprof", "fgprof-x-1-20041123T120000Z.fgprof",
        "fgprof-x-1-20051123T120000Z.fgprof", "fgprof-x-1-20061123T120000Z.fgprof",
    };
    struct files files = files_of(20);
    struct fgprof_profile *profile = make_profile();
    for (size_t i = 0; i < 6; i++)
        make(names[i]);
    times_full = 2;
    assert_true(files_write(&files, profile, "x", 1));
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(is_there(names[i]), i >= 2);
    /* Not all old files are sacrificed for one that can't be written anyway. */
    times_full = 100;
    assert_false(files_write(&files, profile, "x", 1));
    assert_int_equal(times_full, 96);
    assert_true(is_there(names[5]));
    assert_false(is_there(names[4]));
    assert_false(files_write(&files, profile, "x", 1));
    assert_true(is_there(names[5]));
    times_full = 0;
    assert_true(files_write(&files, profile, "x", 1));
    fgprof_profile_free(profile);
}

static void test_a_full_disk_without_files_of_ours(void **state)
{
    (void)state;
    struct files files = files_of(20);
    struct fgprof_profile *profile = make_profile();
    make("other");
    times_full = 100;
    assert_false(files_write(&files, profile, "x", 1));
    assert_int_equal(times_full, 99);
    assert_true(is_there("other"));
    times_full = 0;
    fgprof_profile_free(profile);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(test_names),
        IN_DIRECTORY(test_several_in_a_second),
        IN_DIRECTORY(test_the_oldest_go),
        IN_DIRECTORY(test_nothing_else_goes),
        IN_DIRECTORY(test_a_directory_that_is_gone),
        IN_DIRECTORY(test_written_files),
        IN_DIRECTORY(test_a_full_disk),
        IN_DIRECTORY(test_a_full_disk_without_files_of_ours),
    };
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
