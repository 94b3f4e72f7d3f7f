#include "unit.h"
#include "sampler/pause_budget.h"

#define MS_NS UINT64_C(1000000)

static void test_a_new_thread_may_be_paused(void **state)
{
    (void)state;
    struct pause_budget budget = {0};
    assert_true(pause_budget_allows(&budget, 123, 2, 0));
}

/* Looks once a millisecond while the thread runs. *longest_ns: the longest that it ran between two
 * pauses. Returns how long it was paused. */
static uint64_t run(struct pause_budget *budget, uint64_t pause_ns, uint64_t until_ns,
                    uint64_t *longest_ns)
{
    uint64_t paused_ns = 0, begin_ns = budget->running_ns, last_ns = begin_ns;
    *longest_ns = 0;
    for (uint64_t now_ns = begin_ns; now_ns < until_ns; now_ns += MS_NS) {
        if (now_ns - last_ns > *longest_ns)
            *longest_ns = now_ns - last_ns;
        if (!pause_budget_allows(budget, now_ns, 2, 0))
            continue;
        pause_budget_spend(budget, pause_ns);
        paused_ns += pause_ns;
        last_ns = now_ns;
    }
    return paused_ns;
}

/* However long a pause is, in the long run pauses take no more than the share, and not much less.
 */
static void test_pauses_are_no_more_than_the_share(void **state)
{
    (void)state;
    static const uint64_t pauses_ns[] = {20000, 100000, 1900000, 3000000, 100000000};
    for (size_t i = 0; i < sizeof pauses_ns / sizeof *pauses_ns; i++) {
        struct pause_budget budget = {0};
        uint64_t running_ns = 1000000 * MS_NS, longest_ns;
        uint64_t paused_ns = run(&budget, pauses_ns[i], running_ns, &longest_ns);
        uint64_t debt_ns = pauses_ns[i] > PAUSE_COUNTED_MAX_NS ? PAUSE_DEBT_MAX_NS : 0;
        assert_true(paused_ns < running_ns / 50 + debt_ns + pauses_ns[i] + MS_NS);
        assert_true(paused_ns > running_ns / 50 - MS_NS || longest_ns == MS_NS);
    }
}

/* If the machine stalls while a thread is paused, the thread does not stay unseen for long. */
static void test_one_long_pause_is_not_followed_by_a_long_gap(void **state)
{
    (void)state;
    struct pause_budget budget = {0};
    uint64_t longest_ns;
    run(&budget, 30000, 1000 * MS_NS, &longest_ns);
    pause_budget_spend(&budget, 100 * MS_NS);
    run(&budget, 30000, 2000 * MS_NS, &longest_ns);
    assert_true(longest_ns <= 102 * MS_NS);
}

/* Repeated stalls use up the debt limit, which then holds. */
static void test_the_debt_is_bounded(void **state)
{
    (void)state;
    struct pause_budget budget = {0};
    uint64_t longest_ns;
    uint64_t paused_ns = run(&budget, 100 * MS_NS, 10000 * MS_NS, &longest_ns);
    assert_in_range(paused_ns, 600 * MS_NS, 800 * MS_NS);
}

static void test_time_asleep_pays_nothing(void **state)
{
    (void)state;
    struct pause_budget budget = {0};
    assert_true(pause_budget_allows(&budget, 5 * MS_NS, 2, 0));
    pause_budget_spend(&budget, 2 * MS_NS);
    for (int i = 0; i < 1000; i++)
        assert_false(pause_budget_allows(&budget, 5 * MS_NS, 2, 0));
    assert_true(pause_budget_allows(&budget, 500 * MS_NS, 2, 0));
}

/* A long time without a pause does not allow many in a row. */
static void test_savings_are_bounded(void **state)
{
    (void)state;
    struct pause_budget budget = {0};
    uint64_t paused_ns = 0;
    pause_budget_allows(&budget, 0, 100, 0);
    while (pause_budget_allows(&budget, 3600000 * MS_NS, 100, 0)) {
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
        cmocka_unit_test(test_one_long_pause_is_not_followed_by_a_long_gap),
        cmocka_unit_test(test_the_debt_is_bounded),
        cmocka_unit_test(test_time_asleep_pays_nothing),
        cmocka_unit_test(test_savings_are_bounded),
    };
    return cmocka_run_group_tests_name("pause_budget", tests, NULL, NULL);
}
