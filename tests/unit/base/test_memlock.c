#include "unit.h"

#include "base/kernel_version.h"
#include "base/memlock.h"

#include <limits.h>
#include <sys/personality.h>
#include <sys/resource.h>

#define SOFT_BYTES (64u << 10)
#define HARD_BYTES (128u << 10)

static struct rlimit limit_now(void)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    return limit;
}

static void assert_as_before(void)
{
    struct rlimit limit = limit_now();
    assert_int_equal(limit.rlim_cur, SOFT_BYTES);
    assert_int_equal(limit.rlim_max, HARD_BYTES);
}

/* Makes the kernel report version 2.6. */
static void become_old(void)
{
    assert_true(personality(UNAME26) >= 0);
}

static void test_a_kernel_that_does_not_need_it(void **state)
{
    (void)state;
    if (kernel_version_is_before(kernel_version_read(), 5, 11))
        skip();
    assert_false(memlock_raise());
    assert_as_before();
    assert_false(memlock_restore());
}

static void test_a_kernel_that_needs_it(void **state)
{
    (void)state;
    become_old();
    for (unsigned i = 0; i < 2; i++) { /* the second time, the raised limit must not be taken for
                                          the original */
        assert_true(memlock_raise());
        assert_true(memlock_raise());
        struct rlimit limit = limit_now();
        /* Unlimited with CAP_SYS_RESOURCE, otherwise the hard limit. */
        assert_true(limit.rlim_cur == limit.rlim_max);
        assert_true(limit.rlim_max == RLIM_INFINITY || limit.rlim_max == HARD_BYTES);
        assert_true(memlock_restore());
        assert_as_before();
    }
}

static void test_the_version(void **state)
{
    (void)state;
    const struct kernel_version of_5_10 = {5, 10}, unknown = {UINT_MAX, 0};
    assert_true(kernel_version_is_before(of_5_10, 5, 11));
    assert_true(kernel_version_is_before(of_5_10, 6, 0));
    assert_false(kernel_version_is_before(of_5_10, 5, 10));
    assert_false(kernel_version_is_before(of_5_10, 4, 19));
    assert_false(kernel_version_is_before(unknown, 5, 11));
    become_old();
    assert_int_equal(kernel_version_read().major, 2);
    assert_int_equal(kernel_version_read().minor, 6);
}

static int limit_locked_memory(void **state)
{
    (void)state;
    const struct rlimit limit = {.rlim_cur = SOFT_BYTES, .rlim_max = HARD_BYTES};
    return setrlimit(RLIMIT_MEMLOCK, &limit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kernel_that_does_not_need_it),
        cmocka_unit_test(test_a_kernel_that_needs_it),
        cmocka_unit_test(test_the_version),
    };
    return cmocka_run_group_tests_name("memlock", tests, limit_locked_memory, NULL);
}
