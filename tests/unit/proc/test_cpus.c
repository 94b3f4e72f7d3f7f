#include "unit.h"
#include "proc/cpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_lists(void **state)
{
    (void)state;
    struct cpus cpus = {0};
    assert_int_equal(cpus_parse(&cpus, "0\n"), 0);
    assert_int_equal(cpus.count, 1);
    assert_int_equal(cpus_parse(&cpus, "0-2,5,8-9\n"), 0);
    static const int expected[] = {0, 1, 2, 5, 8, 9};
    assert_int_equal(cpus.count, 6);
    assert_memory_equal(cpus.items, expected, sizeof expected);
    assert_int_equal(cpus_parse(&cpus, ""), 0);
    assert_int_equal(cpus.count, 0);
    cpus_free(&cpus);
}

static void test_refuses_what_is_no_list(void **state)
{
    (void)state;
    static const char *const wrong[] = {"x", "0-", "3-1", "0;1", "-1", "0-99999999", "1 2", "0x1"};
    struct cpus cpus = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(cpus_parse(&cpus, wrong[i]), -EINVAL);
    cpus_free(&cpus);
}

static void test_those_online(void **state)
{
    (void)state;
    struct cpus cpus = {0};
    assert_int_equal(cpus_read_online(&cpus), 0);
    assert_int_equal(cpus.count, sysconf(_SC_NPROCESSORS_ONLN));
    cpus_free(&cpus);
}

/* The fallback for a container without /sys. */
static void test_those_of_stat(void **state)
{
    (void)state;
    static const char stat[] = "cpu  10 0 5 90\ncpu0 5 0 2 45\ncpu2 5 0 3 45\nintr 77 0\ncpu7 1\n";
    static const int expected[] = {0, 2};
    struct cpus cpus = {0}, online = {0};
    char path[] = "/tmp/fgprof-stat-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, stat, strlen(stat)), strlen(stat));
    assert_int_equal(cpus_read_stat(&cpus, path), 0);
    assert_int_equal(cpus.count, 2);
    assert_memory_equal(cpus.items, expected, sizeof expected);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(cpus_read_stat(&cpus, path), -ENODATA);
    close(fd);
    unlink(path);
    assert_int_equal(cpus_read_stat(&cpus, path), -ENOENT);
    assert_int_equal(cpus_read_stat(&cpus, "/proc/stat"), 0);
    assert_int_equal(cpus_read_online(&online), 0);
    assert_int_equal(cpus.count, online.count);
    cpus_free(&cpus);
    cpus_free(&online);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_refuses_what_is_no_list),
        cmocka_unit_test(test_those_online),
        cmocka_unit_test(test_those_of_stat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
