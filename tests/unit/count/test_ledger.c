#include "unit.h"
#include "count/ledger.h"

/* A period of 10 makes ticks easy to count. */
#define PERIOD_NS 10

static struct activity activity_of(uint64_t running_ns, uint64_t waiting_ns)
{
    return (struct activity){.running_ns = running_ns, .waiting_ns = waiting_ns, .switches = 1};
}

static void book(struct ledger *ledger, uint64_t now_ns, uint64_t running_ns, uint64_t waiting_ns,
                 enum account account)
{
    const struct activity activity = activity_of(running_ns, waiting_ns);
    ledger_book(ledger, now_ns, &activity, account);
}

static void assert_share(struct share share, uint64_t ticks, uint64_t time_ns)
{
    assert_int_equal(share.ticks, ticks);
    assert_int_equal(share.time_ns, time_ns);
}

static void test_accounts_of_states(void **state)
{
    (void)state;
    assert_int_equal(ledger_account(THREAD_RUNNING), ACCOUNT_RUNNING);
    assert_int_equal(ledger_account(THREAD_RUNNABLE), ACCOUNT_RUNNABLE);
    assert_int_equal(ledger_account(THREAD_SLEEPING), ACCOUNT_ASLEEP);
    assert_int_equal(ledger_account(THREAD_UNINTERRUPTIBLE), ACCOUNT_ASLEEP);
    assert_int_equal(ledger_account(THREAD_STOPPED), ACCOUNT_ASLEEP);
}

/* Nothing is known of what came before the first figures: all is for the state that was found. */
static void test_first_time_goes_to_the_state_found(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    book(&ledger, 115, 5000, 300, ACCOUNT_ASLEEP);
    assert_share(ledger_take(&ledger, ACCOUNT_ASLEEP, PERIOD_NS), 1, 15);
    assert_share(ledger_take(&ledger, ACCOUNT_RUNNING, PERIOD_NS), 0, 0);
}

/* Found asleep at every tick, though it ran most of the time: the sampler took its CPU. */
static void test_time_is_the_kernels(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    book(&ledger, 110, 1000, 0, ACCOUNT_ASLEEP);
    ledger_take(&ledger, ACCOUNT_ASLEEP, PERIOD_NS);
    book(&ledger, 120, 1007, 1, ACCOUNT_ASLEEP);
    assert_share(ledger_take(&ledger, ACCOUNT_ASLEEP, PERIOD_NS), 0, 2);
    book(&ledger, 130, 1014, 2, ACCOUNT_ASLEEP);
    assert_share(ledger_take(&ledger, ACCOUNT_ASLEEP, PERIOD_NS), 0, 2);
    /* Once found running, all that it ran is for where that is. */
    book(&ledger, 140, 1021, 3, ACCOUNT_RUNNING);
    assert_share(ledger_take(&ledger, ACCOUNT_RUNNING, PERIOD_NS), 2, 21);
    book(&ledger, 150, 1028, 4, ACCOUNT_RUNNABLE);
    assert_share(ledger_take(&ledger, ACCOUNT_RUNNABLE, PERIOD_NS), 0, 4);
    assert_share(ledger_take(&ledger, ACCOUNT_ASLEEP, PERIOD_NS), 0, 4);
}

/* Parts of a tick are carried over within an account: none is favoured by rounding. */
static void test_ticks_are_whole_periods_of_an_account(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 0, .has_activity = true};
    uint64_t ran = 0, slept = 0;
    for (uint64_t tick = 1; tick <= 100; tick++) {
        book(&ledger, tick * 10, tick * 4, 0, ACCOUNT_RUNNING);
        ran += ledger_take(&ledger, ACCOUNT_RUNNING, PERIOD_NS).ticks;
        slept += ledger_take(&ledger, ACCOUNT_ASLEEP, PERIOD_NS).ticks;
    }
    assert_int_equal(ran, 40);
    assert_int_equal(slept, 60);
}

/* The two clocks are not read at the same moment: what does not fit comes with the next time. */
static void test_figures_that_run_ahead(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    book(&ledger, 110, 500, 0, ACCOUNT_RUNNING);
    ledger_take(&ledger, ACCOUNT_RUNNING, PERIOD_NS);
    book(&ledger, 120, 513, 0, ACCOUNT_RUNNING);
    assert_share(ledger_take(&ledger, ACCOUNT_RUNNING, PERIOD_NS), 1, 10);
    book(&ledger, 130, 520, 0, ACCOUNT_RUNNING);
    assert_share(ledger_take(&ledger, ACCOUNT_RUNNING, PERIOD_NS), 1, 10);
    assert_share(ledger_take(&ledger, ACCOUNT_ASLEEP, PERIOD_NS), 0, 0);
}

static void test_time_is_booked_once(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    ledger_book(&ledger, 120, NULL, ACCOUNT_ASLEEP);
    ledger_book(&ledger, 120, NULL, ACCOUNT_ASLEEP);
    ledger_book(&ledger, 90, NULL, ACCOUNT_ASLEEP);
    assert_share(ledger_take(&ledger, ACCOUNT_ASLEEP, PERIOD_NS), 2, 20);
    assert_int_equal(ledger.booked_ns, 120);
}

/* Kernels that only count switches: there are no times to go by. */
static void test_activity_without_times(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    const struct activity activity = {.switches = 7, .counts_ends = true};
    ledger_book(&ledger, 110, &activity, ACCOUNT_RUNNING);
    ledger_book(&ledger, 120, &activity, ACCOUNT_ASLEEP);
    assert_share(ledger_take(&ledger, ACCOUNT_RUNNING, PERIOD_NS), 1, 10);
    assert_share(ledger_take(&ledger, ACCOUNT_ASLEEP, PERIOD_NS), 1, 10);
}

/* By exec another thread takes the id: its figures say nothing of what passed. */
static void test_another_thread_of_the_same_id(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    book(&ledger, 110, 1000000, 500, ACCOUNT_RUNNING);
    ledger_take(&ledger, ACCOUNT_RUNNING, PERIOD_NS);
    book(&ledger, 120, 40, 0, ACCOUNT_RUNNING);
    assert_share(ledger_take(&ledger, ACCOUNT_RUNNING, PERIOD_NS), 1, 10);
    book(&ledger, 130, 47, 0, ACCOUNT_RUNNING);
    assert_share(ledger_take(&ledger, ACCOUNT_RUNNING, PERIOD_NS), 0, 7);
}

/* What the kernel had counted before is not the first sample's. */
static void test_the_beginning(void **state)
{
    (void)state;
    const struct activity before = {.running_ns = 5 * PERIOD_NS, .waiting_ns = 7 * PERIOD_NS},
                          now = {.running_ns = 6 * PERIOD_NS, .waiting_ns = 9 * PERIOD_NS};
    struct ledger known = {0}, unknown = {0};
    ledger_begin(&known, 0, &before);
    ledger_book(&known, 10 * PERIOD_NS, &now, ACCOUNT_RUNNING);
    assert_int_equal(known.owed_ns[ACCOUNT_RUNNING], PERIOD_NS);
    assert_int_equal(known.owed_ns[ACCOUNT_RUNNABLE], 2 * PERIOD_NS);
    assert_int_equal(known.owed_ns[ACCOUNT_ASLEEP], 7 * PERIOD_NS);
    ledger_begin(&unknown, 0, NULL);
    ledger_book(&unknown, 10 * PERIOD_NS, &now, ACCOUNT_RUNNING);
    assert_int_equal(unknown.owed_ns[ACCOUNT_RUNNING], 10 * PERIOD_NS);
}

static void test_settlement_gives_all(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    struct settlement settlements[ACCOUNT_COUNT];
    uint64_t ticks = 0, time_ns = 0;
    book(&ledger, 116, 0, 0, ACCOUNT_RUNNING);
    struct share share = ledger_take(&ledger, ACCOUNT_RUNNING, PERIOD_NS);
    ledger_note_sample(&ledger, ACCOUNT_RUNNING, 7);
    ticks += share.ticks;
    time_ns += share.time_ns;
    book(&ledger, 132, 8, 2, ACCOUNT_ASLEEP);
    share = ledger_take(&ledger, ACCOUNT_ASLEEP, PERIOD_NS);
    ledger_note_sample(&ledger, ACCOUNT_ASLEEP, 9);
    ticks += share.ticks;
    time_ns += share.time_ns;
    unsigned count = ledger_settle(&ledger, PERIOD_NS, NULL, settlements);
    assert_int_equal(count, 2);
    for (unsigned i = 0; i < count; i++) {
        assert_true(settlements[i].sample == 7 || settlements[i].sample == 9);
        ticks += settlements[i].share.ticks;
        time_ns += settlements[i].share.time_ns;
    }
    /* 32 in all; the wait, for which there is no sample, is with those that ran. */
    assert_int_equal(time_ns, 32);
    assert_int_equal(ticks, 3);
    assert_int_equal(ledger.given_ns[ACCOUNT_RUNNING], 16 + 8 + 2);
}

static void test_settlement_without_a_sample(void **state)
{
    (void)state;
    struct ledger ledger = {.booked_ns = 100};
    struct settlement settlements[ACCOUNT_COUNT];
    ledger_book(&ledger, 150, NULL, ACCOUNT_RUNNABLE);
    assert_int_equal(ledger_settle(&ledger, PERIOD_NS, NULL, settlements), 0);
    assert_int_equal(ledger.owed_ns[ACCOUNT_RUNNABLE], 50);
}

/* Of many that lived for less than a tick or a little more, nothing is lost but the last part. */
static void test_parts_of_ticks_are_carried_over(void **state)
{
    (void)state;
    uint64_t carry_ns = 0, ticks = 0, time_ns = 0;
    for (unsigned i = 0; i < 100; i++) {
        struct ledger ledger = {.booked_ns = 100};
        struct settlement settlements[ACCOUNT_COUNT];
        uint64_t lived_ns = i % 2 ? 4 : 13;
        ledger_book(&ledger, 100 + lived_ns, NULL, ACCOUNT_ASLEEP);
        ledger_note_sample(&ledger, ACCOUNT_ASLEEP, i);
        assert_int_equal(ledger_settle(&ledger, PERIOD_NS, &carry_ns, settlements), 1);
        assert_int_equal(settlements[0].sample, i);
        assert_in_range(settlements[0].share.ticks, lived_ns / PERIOD_NS, lived_ns / PERIOD_NS + 1);
        ticks += settlements[0].share.ticks;
        time_ns += settlements[0].share.time_ns;
        assert_int_equal(ticks * PERIOD_NS + carry_ns, time_ns);
    }
    assert_int_equal(time_ns, 50 * (4 + 13));
    assert_int_equal(ticks, 50 * (4 + 13) / PERIOD_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accounts_of_states),
        cmocka_unit_test(test_first_time_goes_to_the_state_found),
        cmocka_unit_test(test_time_is_the_kernels),
        cmocka_unit_test(test_ticks_are_whole_periods_of_an_account),
        cmocka_unit_test(test_figures_that_run_ahead),
        cmocka_unit_test(test_time_is_booked_once),
        cmocka_unit_test(test_activity_without_times),
        cmocka_unit_test(test_another_thread_of_the_same_id),
        cmocka_unit_test(test_the_beginning),
        cmocka_unit_test(test_settlement_gives_all),
        cmocka_unit_test(test_settlement_without_a_sample),
        cmocka_unit_test(test_parts_of_ticks_are_carried_over),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
