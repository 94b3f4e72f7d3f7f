#include "unit.h"
#include "base/random.h"
#include "count/window.h"

static int tear_down(void **state)
{
    window_free(*state);
    free(*state);
    return 0;
}

static int set_up(void **state)
{
    *state = calloc(1, sizeof(struct window));
    return *state ? 0 : -1;
}

static void add(struct window *window, uint32_t sample, uint64_t ticks)
{
    assert_int_equal(window_add(window, sample, ticks, 1), 0);
}

static void test_time_is_divided_by_ticks(void **state)
{
    struct window *window = *state;
    struct window_part parts[WINDOW_ROWS_MAX];
    add(window, 9, 1);
    add(window, 4, 10);
    add(window, 9, 2);
    add(window, 6, 0); /* counts as one tick nevertheless */
    assert_int_equal(window_close(window, 5, 1400, 0, parts), 3);
    assert_true(parts[0].sample == 9 && parts[0].time_ns == 300);
    assert_true(parts[1].sample == 4 && parts[1].time_ns == 1000);
    assert_true(parts[2].sample == 6 && parts[2].time_ns == 100);
    assert_int_equal(window_close(window, 6, 100, 0, parts), 0);
    assert_int_equal(window->begin_ns, 6);
}

/* Two samples with equal ticks: at those of the second, the thread shared the time with three
 * others. */
static void test_parts_are_divided_by_ticks_and_shares(void **state)
{
    struct window *window = *state;
    struct window_part parts[WINDOW_ROWS_MAX];
    assert_int_equal(window_add(window, 1, 10, 1), 0);
    assert_int_equal(window_add(window, 2, 4, 0.25), 0);
    assert_int_equal(window_add(window, 2, 6, 0.25), 0);
    assert_int_equal(window_close(window, 5, 2000, 1001, parts), 2);
    assert_true(parts[0].time_ns == 1000 && parts[0].part_ns == 800);
    assert_true(parts[1].time_ns == 1000 && parts[1].part_ns == 201);
    /* The shares are 0, but the part is divided all the same. */
    assert_int_equal(window_add(window, 1, 1, 0), 0);
    assert_int_equal(window_add(window, 2, 3, 0), 0);
    assert_int_equal(window_close(window, 6, 100, 40, parts), 2);
    assert_true(parts[0].part_ns == 10 && parts[1].part_ns == 30);
}

static void test_one_sample_needs_no_memory(void **state)
{
    struct window *window = *state;
    struct window_part parts[WINDOW_ROWS_MAX];
    for (int i = 0; i < 1000; i++)
        add(window, 3, UINT32_MAX);
    assert_null(window->rows);
    assert_int_equal(window_close(window, 5, UINT64_MAX / 2, 0, parts), 1);
    assert_true(parts[0].sample == 3 && parts[0].time_ns == UINT64_MAX / 2);
    assert_null(window->rows);
}

/* For any numbers, rounding loses nothing, and no part is off by more than a nanosecond. */
static void test_parts_add_up(void **state)
{
    struct window *window = *state;
    struct window_part parts[WINDOW_ROWS_MAX];
    uint64_t draw = 0;
    for (int round = 0; round < 2000; round++) {
        uint64_t ticks[WINDOW_ROWS_MAX] = {0}, all = 0, sum_ns = 0;
        uint64_t time_ns = random_number(1, draw) >> random_below(64, 2, draw);
        uint64_t rows = 1 + random_below(WINDOW_ROWS_MAX, 3, draw);
        for (uint64_t i = 0; i < 3 * rows; i++) {
            uint64_t row = i < rows ? i : random_below((uint32_t)rows, 4, draw++);
            uint64_t more = 1 + random_below(1000, 5, draw++);
            add(window, (uint32_t)(100 + row), more);
            ticks[row] += more;
            all += more;
        }
        uint64_t part_ns = random_number(6, draw), sum_part_ns = 0;
        assert_int_equal(window_close(window, 0, time_ns, part_ns, parts), rows);
        for (uint64_t i = 0; i < rows; i++) {
            long double exact_ns = (long double)time_ns * (long double)ticks[i] / (long double)all;
            long double off_ns = (long double)parts[i].time_ns - exact_ns;
            assert_int_equal(parts[i].sample, 100 + i);
            assert_true(off_ns > -1.001L && off_ns < 1.001L);
            sum_ns += parts[i].time_ns;
            sum_part_ns += parts[i].part_ns;
            assert_true(parts[i].part_ns <= part_ns);
        }
        assert_true(sum_part_ns == part_ns);
        assert_true(sum_ns == time_ns);
    }
}

static void test_when_it_is_over(void **state)
{
    struct window *window = *state;
    struct window_part parts[WINDOW_ROWS_MAX];
    window->begin_ns = 1000;
    for (uint32_t i = 0; i < WINDOW_TICKS_MIN - 1; i++)
        add(window, i, 1);
    assert_false(window_is_over(window, 1000 + 10ull * WINDOW_SPAN_NS));
    add(window, 0, 1);
    assert_false(window_is_over(window, 1000 + WINDOW_SPAN_NS - 1));
    assert_true(window_is_over(window, 1000 + WINDOW_SPAN_NS));
    for (uint32_t i = WINDOW_TICKS_MIN - 1; i < WINDOW_ROWS_MAX; i++) {
        assert_false(window_is_over(window, 1001));
        add(window, i, 1);
    }
    assert_true(window_is_over(window, 1001));
    assert_int_equal(window_close(window, 1001, 0, 0, parts), WINDOW_ROWS_MAX);
    assert_false(window_is_over(window, UINT64_MAX));
}

static void test_ticks_move(void **state)
{
    struct window *window = *state;
    struct window_part parts[WINDOW_ROWS_MAX];
    assert_int_equal(window_move(window, 1, 2, 5), 0);
    add(window, 1, 10);
    assert_int_equal(window_move(window, 1, 2, 0), 0);
    assert_int_equal(window_move(window, 3, 2, 4), 0);
    assert_int_equal(window_move(window, 1, 2, 4), 4);   /* to a new row */
    assert_int_equal(window_move(window, 1, 2, 100), 6); /* all the rest */
    assert_int_equal(window->count, 1);
    assert_int_equal(window_move(window, 2, 3, 10), 10); /* the row changes its sample */
    add(window, 4, 30);
    assert_int_equal(window_close(window, 5, 400, 80, parts), 2);
    assert_true(parts[0].sample == 3 && parts[0].time_ns == 100 && parts[0].part_ns == 20);
    assert_true(parts[0].ticks == 10 && parts[1].ticks == 30);
    assert_true(parts[1].sample == 4 && parts[1].time_ns == 300 && parts[1].part_ns == 60);
    /* The last row is reserved for the sample that closes the window. */
    for (uint32_t i = 0; i < WINDOW_ROWS_MAX - 1; i++)
        add(window, i, 2);
    assert_int_equal(window_move(window, 0, 1000, 1), 0);
    assert_int_equal(window_move(window, 0, 1, 1), 1);
    assert_int_equal(window_move(window, 0, 1000, 1), 1);
    assert_int_equal(window->count, WINDOW_ROWS_MAX - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_time_is_divided_by_ticks),
        TEST(test_parts_are_divided_by_ticks_and_shares),
        TEST(test_one_sample_needs_no_memory),
        TEST(test_parts_add_up),
        TEST(test_when_it_is_over),
        TEST(test_ticks_move),
    };
    return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
