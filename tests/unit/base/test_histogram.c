#include "unit.h"
#include "base/histogram.h"

static struct histogram *new_histogram(void)
{
    struct histogram *histogram = calloc(1, sizeof *histogram);
    assert_non_null(histogram);
    return histogram;
}

/* Rounded down to its bucket, whose width is at most a 16th of the value. */
static void assert_close(uint64_t got, uint64_t exact)
{
    assert_true(got <= exact);
    assert_true(exact - got <= exact / 16);
}

static void test_empty_has_no_quantiles(void **state)
{
    (void)state;
    struct histogram *histogram = new_histogram();
    assert_int_equal(histogram_quantile_ns(histogram, 0), 0);
    assert_int_equal(histogram_quantile_ns(histogram, 500), 0);
    assert_int_equal(histogram_quantile_ns(histogram, 1000), 0);
    free(histogram);
}

static void test_every_magnitude_is_within_a_16th(void **state)
{
    (void)state;
    struct histogram *histogram = new_histogram();
    for (unsigned shift = 0; shift < 64; shift++) {
        for (uint64_t sub = 0; sub < 64; sub++) {
            uint64_t value = (1ull << shift) + ((1ull << shift) / 64) * sub;
            memset(histogram, 0, sizeof *histogram);
            histogram_add(histogram, value);
            assert_close(histogram_quantile_ns(histogram, 500), value);
            assert_int_equal(histogram->max_ns, value);
            assert_int_equal(histogram->sum_ns, value);
            assert_int_equal(histogram->count, 1);
        }
    }
    free(histogram);
}

static void test_small_values_are_exact(void **state)
{
    (void)state;
    for (uint64_t value = 0; value < 32; value++) {
        struct histogram *histogram = new_histogram();
        histogram_add(histogram, value);
        assert_int_equal(histogram_quantile_ns(histogram, 1000), value);
        free(histogram);
    }
}

static void test_quantiles_of_a_known_row(void **state)
{
    (void)state;
    struct histogram *histogram = new_histogram();
    /* Not in ascending order: the order of adding must not matter. 7919 is prime to 100000. */
    for (uint64_t i = 0; i < 100000; i++)
        histogram_add(histogram, i * 7919 % 100000 + 1);
    assert_int_equal(histogram->count, 100000);
    assert_int_equal(histogram->max_ns, 100000);
    assert_int_equal(histogram->sum_ns, 100000ull * 100001 / 2);
    static const unsigned per_mille[] = {1, 10, 250, 500, 750, 900, 990, 999, 1000};
    for (size_t i = 0; i < sizeof per_mille / sizeof *per_mille; i++)
        assert_close(histogram_quantile_ns(histogram, per_mille[i]), per_mille[i] * 100ull);
    free(histogram);
}

static void test_rank_is_rounded_up(void **state)
{
    (void)state;
    struct histogram *histogram = new_histogram();
    for (uint64_t value = 1; value <= 3; value++)
        histogram_add(histogram, value);
    /* 333 per mille is less than a third of the values. */
    assert_int_equal(histogram_quantile_ns(histogram, 0), 1);
    assert_int_equal(histogram_quantile_ns(histogram, 333), 1);
    assert_int_equal(histogram_quantile_ns(histogram, 334), 2);
    assert_int_equal(histogram_quantile_ns(histogram, 666), 2);
    assert_int_equal(histogram_quantile_ns(histogram, 667), 3);
    assert_int_equal(histogram_quantile_ns(histogram, 1000), 3);
    free(histogram);
}

static void test_a_rare_outlier_shows_only_at_the_end(void **state)
{
    (void)state;
    struct histogram *histogram = new_histogram();
    for (size_t i = 0; i < 999; i++)
        histogram_add(histogram, 10);
    histogram_add(histogram, 1000000);
    assert_int_equal(histogram_quantile_ns(histogram, 500), 10);
    assert_int_equal(histogram_quantile_ns(histogram, 999), 10);
    assert_close(histogram_quantile_ns(histogram, 1000), 1000000);
    free(histogram);
}

static void test_zero_and_the_largest_value(void **state)
{
    (void)state;
    struct histogram *histogram = new_histogram();
    histogram_add(histogram, 0);
    histogram_add(histogram, 0);
    histogram_add(histogram, UINT64_MAX);
    assert_int_equal(histogram_quantile_ns(histogram, 500), 0);
    assert_int_equal(histogram_quantile_ns(histogram, 1000), 0xf800000000000000ull);
    assert_int_equal(histogram->max_ns, UINT64_MAX);
    free(histogram);
}

static void test_what_came_after_a_moment(void **state)
{
    (void)state;
    struct histogram *histogram = new_histogram(), *before = new_histogram();
    histogram_add(histogram, 10);
    histogram_add(histogram, 5000000);
    *before = *histogram;
    histogram_add(histogram, 40);
    histogram_add(histogram, 1000);
    histogram_subtract(histogram, before);
    assert_int_equal(histogram->count, 2);
    assert_int_equal(histogram->sum_ns, 1040);
    assert_int_equal(histogram_quantile_ns(histogram, 500), 40);
    assert_close(histogram->max_ns, 1000);
    *histogram = *before;
    histogram_add(histogram, 7000001);
    histogram_subtract(histogram, before);
    assert_int_equal(histogram->max_ns, 7000001);
    *histogram = *before;
    histogram_subtract(histogram, before);
    assert_int_equal(histogram->count, 0);
    assert_int_equal(histogram->max_ns, 0);
    free(before);
    free(histogram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_has_no_quantiles),
        cmocka_unit_test(test_every_magnitude_is_within_a_16th),
        cmocka_unit_test(test_small_values_are_exact),
        cmocka_unit_test(test_quantiles_of_a_known_row),
        cmocka_unit_test(test_rank_is_rounded_up),
        cmocka_unit_test(test_a_rare_outlier_shows_only_at_the_end),
        cmocka_unit_test(test_zero_and_the_largest_value),
        cmocka_unit_test(test_what_came_after_a_moment),
    };
    return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
