#include "unit.h"
#include "proc/cpu_limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void expect_group(const char *text, bool is_v2, const char *wanted)
{
    char path[CPU_GROUP_BYTES];
    bool is_there = cpu_group_parse(text, is_v2, path);
    assert_int_equal(is_there, wanted != NULL);
    if (wanted)
        assert_string_equal(path, wanted);
}

static void test_groups(void **state)
{
    (void)state;
    static const char mixed[] = "12:cpuset:/set\n4:cpuacct,cpu:/user.slice/a:b\n"
                                "1:name=systemd:/other\n0::/system.slice/x.service\n";
    expect_group(mixed, false, "/user.slice/a:b");
    expect_group(mixed, true, "/system.slice/x.service");
    expect_group("0::/\n", true, "");
    expect_group("0::/a", true, "/a");
    expect_group("1:cpu:/\n", false, "");
    expect_group("0::/\n", false, NULL);
    expect_group("3:cpuset,cpuacct:/a\n", false, NULL);
}

static void test_groups_of_hostile_text(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",         "\n\n",     "0:",    "0::",           "0::a",          "::/a", "0::/..",
        "0::/../a", "0::/a/..", "1:cpu", "1:name=cpu:/a", "0::/a/../../b", "x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_group(wrong[i], true, NULL);
        expect_group(wrong[i], false, NULL);
    }
    char text[CPU_GROUP_BYTES + 16] = "0::/";
    memset(text + 4, 'a', CPU_GROUP_BYTES);
    expect_group(text, true, NULL);
    text[3 + CPU_GROUP_BYTES - 1] = '\0';
    expect_group(text, true, text + 3);
}

static void test_throttling(void **state)
{
    (void)state;
    assert_int_equal(cpu_throttled_parse("usage_usec 5\nnr_throttled 3\nthrottled_usec 1200000\n"),
                     1200000000);
    assert_int_equal(cpu_throttled_parse("nr_throttled 3\nthrottled_time 77\nwait_sum 4\n"), 77);
    static const char *const none[] = {
        "", "\n", "throttled_usec", "throttled_usec x", "xthrottled_usec 4", "throttled_usecs 4"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(cpu_throttled_parse(none[i]), 0);
    assert_true(cpu_throttled_parse("throttled_usec 18446744073709551615") == UINT64_MAX);
}

static void test_quotas(void **state)
{
    (void)state;
    assert_int_equal(cpu_quota_parse("200000 100000\n"), 2000);
    assert_int_equal(cpu_quota_parse("25000\n 100000\n"), 250); /* version 1: two files */
    static const char *const none[] = {"max 100000\n", "-1\n 100000\n", "100000 0\n", "100000", "",
                                       "0 100000",     "100000 -5"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(cpu_quota_parse(none[i]), 0);
    assert_true(cpu_quota_parse("9223372036854775807 1") == UINT64_MAX);
}

static void test_steal(void **state)
{
    (void)state;
    uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    assert_int_equal(cpu_steal_parse("cpu  10 0 5 90 1 2 3 7 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"),
                     7 * tick_ns);
    static const char *const none[] = {"", "cpu  10 0 5", "cpu0 1 1 1 1 1 1 1 1 1 1",
                                       "cpu  a b c d e f g h"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(cpu_steal_parse(none[i]), 0);
}

/* Whatever groups this process has, none is listed twice. */
static void test_own_groups(void **state)
{
    (void)state;
    struct cpu_limits limits = {0};
    int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(cpu_limits_add(&limits, proc_fd), 0);
    size_t count = limits.count;
    assert_int_equal(cpu_limits_add(&limits, proc_fd), 0);
    assert_int_equal(limits.count, count);
    cpu_limits_read(&limits);
    assert_int_equal(cpu_limits_add(&limits, -1), 0);
    close(proc_fd);
    cpu_limits_free(&limits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),     cmocka_unit_test(test_groups_of_hostile_text),
        cmocka_unit_test(test_throttling), cmocka_unit_test(test_quotas),
        cmocka_unit_test(test_steal),      cmocka_unit_test(test_own_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
