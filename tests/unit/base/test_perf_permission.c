#include "unit.h"

#include "base/perf_permission.h"

#include <string.h>

static void test_the_least_capability(void **state)
{
    (void)state;
    const char *at_3 = perf_permission_needed_on(6, 1, 3);
    assert_string_equal(perf_permission_needed_on(6, 1, 2), "CAP_PERFMON");
    assert_string_equal(perf_permission_needed_on(5, 8, -1), "CAP_PERFMON");
    assert_string_equal(perf_permission_needed_on(5, 7, 2), "CAP_SYS_ADMIN");
    assert_string_equal(perf_permission_needed_on(4, 19, 3), "CAP_SYS_ADMIN");
    assert_non_null(strstr(at_3, "CAP_PERFMON"));
    assert_non_null(strstr(at_3, "CAP_SYS_ADMIN"));
    assert_string_equal(perf_permission_needed_on(6, 1, 4), at_3);
}

static void test_on_this_kernel(void **state)
{
    (void)state;
    assert_non_null(strstr(perf_permission_needed(), "CAP_"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_capability),
        cmocka_unit_test(test_on_this_kernel),
    };
    return cmocka_run_group_tests_name("perf_permission", tests, NULL, NULL);
}
