#include "unit.h"
#include "count/tick_runs.h"

#define WAIT 1000 /* the number of a wait; its value does not matter */

static int set_up(void **state)
{
    struct tick_runs *runs = calloc(1, sizeof *runs);
    *state = runs;
    if (runs)
        runs->runs_max = 3;
    return runs ? 0 : -1;
}

static int tear_down(void **state)
{
    tick_runs_free(*state);
    free(*state);
    return 0;
}

static void assert_run(const struct tick_runs *runs, size_t number, uint32_t sample,
                       uint32_t last_tick, uint32_t ticks)
{
    assert_true(number < runs->count);
    assert_int_equal(runs->runs[number].sample, sample);
    assert_int_equal(runs->runs[number].last_tick, last_tick);
    assert_int_equal(runs->runs[number].ticks, ticks);
}

static void test_one_wait_is_one_run(void **state)
{
    struct tick_runs *runs = *state;
    struct tick_cursor cursor = {0};
    tick_runs_add(runs, &cursor, 7, 40, 3, 2, WAIT);
    tick_runs_add(runs, &cursor, 7, 40, 4, 1, WAIT);
    tick_runs_add(runs, &cursor, 7, 40, 5, 1, WAIT + 1); /* another wait in the same place */
    tick_runs_add(runs, &cursor, 7, 40, 7, 1, WAIT + 1); /* it ran at tick 6 */
    assert_int_equal(runs->count, 3);
    assert_run(runs, 0, 40, 4, 3);
    assert_run(runs, 1, 40, 5, 1);
    assert_run(runs, 2, 40, 7, 1);
}

static void test_a_wait_gets_its_waker(void **state)
{
    struct tick_runs *runs = *state;
    struct tick_cursor cursor = {0};
    tick_runs_add(runs, &cursor, 7, 40, 3, 2, WAIT);
    tick_runs_correct(runs, &cursor, WAIT, 40, 41);
    tick_runs_add(runs, &cursor, 7, 40, 4, 1, WAIT + 1);
    tick_runs_correct(runs, &cursor, WAIT, 40, 42);     /* the wait has gone on */
    tick_runs_correct(runs, &cursor, WAIT + 1, 50, 43); /* that wait was elsewhere */
    tick_runs_correct(runs, &cursor, 0, 40, 44);
    assert_run(runs, 0, 41, 3, 2);
    assert_run(runs, 1, 40, 4, 1);
}

static void test_what_there_is_no_room_for(void **state)
{
    struct tick_runs *runs = *state;
    struct tick_cursor cursor = {0};
    for (uint32_t i = 1; i <= 3; i++)
        tick_runs_add_running(runs, 7, 40 + i, i);
    tick_runs_add(runs, &cursor, 7, 50, 8, 5, WAIT);
    tick_runs_correct(runs, &cursor, WAIT, 50, 51);
    tick_runs_add_running(runs, 7, 44, 9);
    assert_int_equal(runs->count, 3);
    assert_int_equal(runs->lost, 6);
    assert_true(runs->runs[2].ran);
}

static void test_ticks_that_can_not_be(void **state)
{
    struct tick_runs *runs = *state;
    struct tick_cursor cursor = {0};
    tick_runs_add(runs, &cursor, 7, 40, 3, 0, WAIT);
    tick_runs_add(runs, &cursor, 7, 40, 3, 4, WAIT);
    tick_runs_add(runs, &cursor, 7, 40, 1ull << 31, 4, WAIT);
    tick_runs_add_running(runs, 7, 40, 0);
    tick_runs_add_running(runs, 7, 40, 1ull << 40);
    assert_int_equal(runs->count, 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_one_wait_is_one_run),
        TEST(test_a_wait_gets_its_waker),
        TEST(test_what_there_is_no_room_for),
        TEST(test_ticks_that_can_not_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
