/* When ticks are due. */
#include "unit.h"
#include "base/ticks.h"

#define PERIOD_NS 10101010u
#define START_NS 5000000000u
#define TICKS 10000

static struct ticks ticks_of(uint64_t seed)
{
    return (struct ticks){.start_ns = START_NS, .period_ns = PERIOD_NS, .seed = seed};
}

static void test_each_period_has_its_tick(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        const struct ticks ticks = ticks_of(seed);
        for (uint64_t period = 0; period < TICKS; period++) {
            uint64_t due_ns = ticks_due_ns(&ticks, period);
            assert_int_equal(ticks_period_at(&ticks, due_ns), period);
            assert_int_equal(ticks_until(&ticks, due_ns - 1), period);
            assert_int_equal(ticks_until(&ticks, due_ns), period + 1);
            assert_int_equal(ticks_until(&ticks, START_NS + (period + 1) * PERIOD_NS - 1),
                             period + 1);
        }
    }
}

static void test_nothing_is_due_before_the_start(void **state)
{
    (void)state;
    const struct ticks ticks = ticks_of(3);
    assert_int_equal(ticks_until(&ticks, 0), 0);
    assert_int_equal(ticks_period_at(&ticks, START_NS - 1), 0);
    assert_int_equal(ticks_period_at(&ticks, START_NS + PERIOD_NS), 1);
}

/* Each tenth of the period has a tenth of the ticks. */
static void test_ticks_are_anywhere_in_their_period(void **state)
{
    (void)state;
    enum { PARTS = 10 };
    const struct ticks ticks = ticks_of(4);
    unsigned counts[PARTS] = {0};
    for (uint64_t period = 0; period < TICKS; period++) {
        uint64_t within_ns = ticks_due_ns(&ticks, period) - START_NS - period * PERIOD_NS;
        counts[within_ns * PARTS / PERIOD_NS]++;
    }
    /* The standard deviation is 30. */
    for (unsigned i = 0; i < PARTS; i++)
        assert_in_range(counts[i], TICKS / PARTS - 90, TICKS / PARTS + 90);
}

static void test_a_seed_repeats_all_moments(void **state)
{
    (void)state;
    const struct ticks one = ticks_of(77), again = ticks_of(77), other = ticks_of(78);
    unsigned equal = 0;
    for (uint64_t period = 0; period < TICKS; period++) {
        assert_int_equal(ticks_due_ns(&one, period), ticks_due_ns(&again, period));
        equal += ticks_due_ns(&one, period) == ticks_due_ns(&other, period);
    }
    assert_true(equal < 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_period_has_its_tick),
        cmocka_unit_test(test_nothing_is_due_before_the_start),
        cmocka_unit_test(test_ticks_are_anywhere_in_their_period),
        cmocka_unit_test(test_a_seed_repeats_all_moments),
    };
    return cmocka_run_group_tests_name("ticks", tests, NULL, NULL);
}
