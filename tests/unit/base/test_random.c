#include "unit.h"
#include "base/random.h"

/* The first numbers from splitmix64.c for these seeds. */
static void test_known_numbers(void **state)
{
    (void)state;
    assert_true(random_number(0, 0) == 0xe220a8397b1dcdafu);
    assert_true(random_number(0, 1) == 0x6e789e6aa1b965f4u);
    assert_true(random_number(0, 2) == 0x06c45d188009454fu);
    assert_true(random_number(1234567, 0) == 6457827717110365317u);
    assert_true(random_number(1234567, 1) == 3203168211198807973u);
}

static void test_all_below_the_limit_are_equally_likely(void **state)
{
    (void)state;
    enum { LIMIT = 7, DRAWS = 70000 };
    unsigned counts[LIMIT] = {0};
    for (uint64_t n = 0; n < DRAWS; n++)
        counts[random_below(LIMIT, 5, n)]++;
    /* The standard deviation is 93. */
    for (unsigned i = 0; i < LIMIT; i++)
        assert_in_range(counts[i], 10000 - 3 * 93, 10000 + 3 * 93);
    assert_int_equal(random_below(1, 5, 0), 0);
    for (uint64_t n = 0; n < 1000; n++)
        assert_true(random_below(UINT32_MAX, 5, n) < UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_numbers),
        cmocka_unit_test(test_all_below_the_limit_are_equally_likely),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
