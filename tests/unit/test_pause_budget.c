#include "unit.h"
#include "recorder/pause_budget.h"

#define MS_NS 1000000u

static void test_a_new_thread_may_be_paused(void **state)
{
    (void)state;
    struct pause_budget budget = {0};
    assert_true(pause_budget_allows(&budget, 123, 2));
}

/* Whatever a pause costs, in the long run it is no more than the share. */
static void test_pauses_are_no_more_than_the_share(void **state)
{
    (void)state;
    static const uint64_t pauses_ns[] = {20000, 100000, 3000000};
    for (size_t i = 0; i < sizeof pauses_ns / sizeof *pauses_ns; i++) {
        struct pause_budget budget = {0};
        uint64_t paused_ns = 0, running_ns = 0, count = 0;
        for (; running_ns < 20000ull * MS_NS; running_ns += MS_NS) {
            if (!pause_budget_allows(&budget, running_ns, 2))
                continue;
            pause_budget_spend(&budget, pauses_ns[i]);
            paused_ns += pauses_ns[i];
            count++;
        }
        double share = (double)paused_ns / (double)running_ns;
        assert_true(share < 0.021);
        /* As many as it allows, and no fewer: at most one a look. */
        assert_true(share > 0.019 || count == running_ns / MS_NS);
    }
}

static void test_time_asleep_pays_nothing(void **state)
{
    (void)state;
    struct pause_budget budget = {0};
    assert_true(pause_budget_allows(&budget, 5 * MS_NS, 2));
    pause_budget_spend(&budget, 2 * MS_NS);
    for (int i = 0; i < 1000; i++)
        assert_false(pause_budget_allows(&budget, 5 * MS_NS, 2));
    assert_true(pause_budget_allows(&budget, 500 * MS_NS, 2));
}

/* A long time without a pause does not allow many in a row. */
static void test_savings_are_bounded(void **state)
{
    (void)state;
    struct pause_budget budget = {0};
    uint64_t paused_ns = 0;
    pause_budget_allows(&budget, 0, 100);
    while (pause_budget_allows(&budget, 3600000ull * MS_NS, 100)) {
        pause_budget_spend(&budget, MS_NS);
        paused_ns += MS_NS;
    }
    assert_true(paused_ns <= 11 * MS_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_thread_may_be_paused),
        cmocka_unit_test(test_pauses_are_no_more_than_the_share),
        cmocka_unit_test(test_time_asleep_pays_nothing),
        cmocka_unit_test(test_savings_are_bounded),
    };
    return cmocka_run_group_tests_name("pause_budget", tests, NULL, NULL);
}
