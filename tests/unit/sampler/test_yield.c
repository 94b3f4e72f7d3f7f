#include "unit.h"
#include "sampler/yield.h"

#define MS_NS UINT64_C(1000000)

/* A round of a millisecond yields some 20 times. */
static void test_a_round_gives_way_often(void **state)
{
    (void)state;
    struct throttle yielding = {0};
    unsigned times = 0;
    for (uint64_t now_ns = MS_NS; now_ns < 2 * MS_NS; now_ns += 1000) {
        if (!yield_is_due(&yielding, now_ns))
            continue;
        yield_note(&yielding, now_ns, now_ns + 10000);
        now_ns += 10000;
        times++;
    }
    assert_in_range(times, 15, 30);
}

/* At each yield, a thread that computes takes the CPU for a time slice of 3 ms. */
static void test_computing_threads_do_not_make_rounds_late(void **state)
{
    (void)state;
    struct throttle yielding = {0};
    uint64_t given_ns = 0, all_ns = 10000 * MS_NS;
    for (uint64_t now_ns = 1; now_ns < all_ns; now_ns += MS_NS / 10) {
        if (!yield_is_due(&yielding, now_ns))
            continue;
        yield_note(&yielding, now_ns, now_ns + 3 * MS_NS);
        now_ns += 3 * MS_NS;
        given_ns += 3 * MS_NS;
    }
    assert_true(given_ns > all_ns / 200);
    assert_true(given_ns <= all_ns / 98);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_round_gives_way_often),
        cmocka_unit_test(test_computing_threads_do_not_make_rounds_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
