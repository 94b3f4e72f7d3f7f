#include "unit.h"
#include "base/throttle.h"

static void test_the_first_time_is_free(void **state)
{
    (void)state;
    const struct throttle never = {0};
    assert_true(throttle_allows(&never, 1000, 0, 20));
    assert_true(throttle_allows(&never, 1000, 1000, 20));
}

static void test_by_age_and_by_cost(void **state)
{
    (void)state;
    const struct throttle throttle = {.done_ns = 1000, .cost_ns = 50};
    assert_false(throttle_allows(&throttle, 1999, 0, 20));
    assert_true(throttle_allows(&throttle, 2000, 0, 20));
    assert_false(throttle_allows(&throttle, 2000, 1001, 20));
    assert_true(throttle_allows(&throttle, 2001, 1001, 20));
}

static void test_a_moment_before_is_no_time_after(void **state)
{
    (void)state;
    const struct throttle throttle = {.done_ns = 1000, .cost_ns = 1};
    assert_false(throttle_allows(&throttle, 999, 0, 20));
    assert_false(throttle_allows(&throttle, 0, 1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_time_is_free),
        cmocka_unit_test(test_by_age_and_by_cost),
        cmocka_unit_test(test_a_moment_before_is_no_time_after),
    };
    return cmocka_run_group_tests_name("throttle", tests, NULL, NULL);
}
