/* The weights of samples give an unbiased estimate of what was allocated, at any size. */
#include "unit.h"
#include "agent/interval.h"

#define RATE (512u << 10)

/* e^-x; 0 for x above 700. A short series for x / 64, squared six times. */
static double exp_of_negative(double x)
{
    double term = 1, sum = 1;
    for (int n = 1; n < 20; n++) {
        term *= -x / 64 / n;
        sum += term;
    }
    for (int i = 0; i < 6; i++)
        sum *= sum;
    return x > 700 ? 0 : sum;
}

static double weight(double size)
{
    return 1 / (1 - exp_of_negative(size / RATE));
}

static void assert_near(double value, double expected, double part)
{
    if (value < expected * (1 - part) || value > expected * (1 + part))
        fail_msg("%g is not within %g of %g", value, part, expected);
}

static void test_mean_and_spread(void **state)
{
    (void)state;
    enum { DRAWS = 4000000 };
    uint64_t random = 1, below = 0, far = 0;
    double sum = 0, squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        int64_t bytes = interval_draw(&random, RATE);
        assert_true(bytes >= 0);
        sum += (double)bytes;
        squares += (double)bytes * (double)bytes;
        below += bytes < RATE;
        far += bytes >= 5 * RATE;
    }
    /* The tolerances are four standard deviations. */
    assert_near(sum / DRAWS, RATE - 0.5, 0.002);
    assert_near(squares / DRAWS, 2.0 * RATE * RATE, 0.0045);
    assert_near((double)below / DRAWS, 1 - exp_of_negative(1), 0.0016);
    assert_near((double)far / DRAWS, exp_of_negative(5), 0.025);
}

static void test_extremes(void **state)
{
    (void)state;
    uint64_t random = 2;
    for (int i = 0; i < 1000; i++) {
        assert_in_range(interval_draw(&random, 1), 0, 50);
        assert_int_equal(interval_draw(&random, 0), 0);
        assert_true(interval_draw(&random, UINT64_MAX) > 0);
    }
}

/* One size after the other, with about 200,000 samples of each. */
static void test_no_size_is_biased(void **state)
{
    (void)state;
    static const double sizes[] = {8, 516, 4096, 65536, 524288, 2097152, 8388608};
    uint64_t random = 3;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t left = interval_draw(&random, RATE), size = (int64_t)sizes[i];
        double allocations = 200000 * weight(sizes[i]), objects = 0;
        /* Skips unsampled allocations at once: an interval lasts for left / size of them. */
        for (double done = 0; done < allocations;) {
            double unsampled = (double)(left / size);
            done += unsampled + 1;
            if (done > allocations)
                break;
            objects += weight(sizes[i]);
            left = interval_draw(&random, RATE);
        }
        assert_near(objects, allocations, 0.01);
    }
}

/* A mix of sizes, as in a program: estimates of bytes and of objects. */
static void test_a_mix_is_not_biased(void **state)
{
    (void)state;
    uint64_t random = 4, other = 99;
    int64_t left = interval_draw(&random, RATE);
    double bytes = 0, objects = 0, told_bytes = 0, told_objects = 0;
    for (int i = 0; i < 3000000; i++) {
        /* From 64 KiB to 8 MiB, equally many in each power of two; estimates of smaller objects
         * vary too much with so few samples. */
        other = other * 6364136223846793005u + 1442695040888963407u;
        int64_t size = (int64_t)(65536u << (other >> 61)) + (int64_t)(other >> 33 & 0x7fff);
        bytes += (double)size;
        objects++;
        if (size <= left) {
            left -= size;
            continue;
        }
        told_bytes += (double)size * weight((double)size);
        told_objects += weight((double)size);
        left = interval_draw(&random, RATE);
    }
    assert_near(told_bytes, bytes, 0.005);
    assert_near(told_objects, objects, 0.005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_and_spread),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_no_size_is_biased),
        cmocka_unit_test(test_a_mix_is_not_biased),
    };
    return cmocka_run_group_tests_name("interval", tests, NULL, NULL);
}
