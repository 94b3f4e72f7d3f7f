/* The agent in programs that are linked with it, or that load it at run time. */
#include "target.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

static void open_reader(struct target *target)
{
    assert_int_equal(target_ready(target), target->pid);
    assert_true(reader_open(&target->reader, target->pid));
    reader_start(&target->reader, AGENT_WANTS_HEAP, EVERY_OBJECT);
    target_go(target);
}

static void assert_exact(const struct target *target, struct truth truth)
{
    const struct reader *reader = &target->reader;
    assert_int_equal(reader->live, truth.live);
    assert_int_equal(reader->live_bytes, truth.live_bytes);
    assert_int_equal(reader->unknown, 0);
    assert_int_equal(reader->twice, 0);
    assert_int_equal(reader->header->made_lost, 0);
    assert_int_equal(reader->header->live, reader->live);
    assert_true(reader->made >= truth.made);
}

static void check(struct target *target, const char *allocator)
{
    open_reader(target);
    assert_exact(target, target_done(target));
    assert_string_equal(target->reader.header->allocator, allocator);
    target_end(target);
}

static void test_linked(void **state)
{
    (void)state;
    struct target target;
    target_start(&target, NULL, NULL, NULL, "linked libc");
    check(&target, "libc.so.6");
    target_start(&target, BUMP, NULL, NULL, "linked rounds 10");
    check(&target, "libfixture-bump.so");
}

/* Bound calls, pointers to malloc, libc's own calls, and libraries that are loaded later. */
static void test_loaded(void **state)
{
    (void)state;
    struct target target;
    target_start(&target, NULL, NULL, NULL, "loader-now " AGENT " " PLUGIN);
    check(&target, "libc.so.6");
    target_start(&target, NULL, NULL, NULL, "loader-lazy " AGENT " " PLUGIN);
    check(&target, "libc.so.6");
    target_start(&target, NULL, "LD_BIND_NOW", "1", "loader-lazy " AGENT " " PLUGIN);
    check(&target, "libc.so.6");
    target_start(&target, BUMP, NULL, NULL, "loader-now " AGENT " " PLUGIN);
    check(&target, "libfixture-bump.so");
}

/* An allocator that has C++'s operators new and delete, C23's functions that free, and jemalloc's
 * that resizes. */
static void test_operators(void **state)
{
    (void)state;
    struct target target;
    target_start(&target, AGENT, NULL, NULL, "operators");
    check(&target, "libfixture-bump.so");
}

/* No allocation is visible, and the header says why. */
static void test_own_malloc(void **state)
{
    (void)state;
    struct target target;
    target_start(&target, AGENT, NULL, NULL, "own-malloc rounds 100");
    open_reader(&target);
    target_done(&target);
    assert_int_equal(target.reader.made, 0);
    assert_string_equal(target.reader.header->allocator, "fixture-own-malloc");
    target_end(&target);
}

/* Copies a program and makes it setuid to another user. */
static bool copy_setuid(const char *from, const char *to)
{
    char bytes[65536];
    ssize_t length;
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    while ((length = read(in, bytes, sizeof bytes)) > 0) {
        if (write(out, bytes, (size_t)length) != length)
            length = -1;
    }
    bool is_copied = length == 0 && fchown(out, 65534, 65534) == 0 && fchmod(out, 04755) == 0;
    close(in);
    close(out);
    return is_copied;
}

/* A setuid program of another user is left alone. */
static void test_setuid(void **state)
{
    (void)state;
    struct target target;
    struct reader reader;
    char directory[] = "/tmp/fgprof-unit-XXXXXX", path[64], command[128];
    struct statvfs file_system;
    if (getuid() != 0 || statvfs("/tmp", &file_system) || file_system.f_flag & ST_NOSUID)
        skip();
    assert_non_null(mkdtemp(directory));
    assert_int_equal(chmod(directory, 0755), 0);
    snprintf(path, sizeof path, "%s/linked", directory);
    snprintf(command, sizeof command, "%s rounds 10", path);
    assert_true(copy_setuid(FIXTURES "/fixture-linked", path));
    target_start(&target, NULL, "FGPROF_AGENT_HEAP_RATE", "1", command);
    assert_int_equal(target_ready(&target), target.pid);
    assert_false(reader_open(&reader, target.pid));
    target_go(&target);
    target_done(&target);
    target_end(&target);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linked),    cmocka_unit_test(test_loaded),
        cmocka_unit_test(test_operators), cmocka_unit_test(test_own_malloc),
        cmocka_unit_test(test_setuid),
    };
    return cmocka_run_group_tests_name("loaded", tests, NULL, NULL);
}
