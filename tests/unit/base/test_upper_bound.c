#include "unit.h"
#include "base/upper_bound.h"

struct item {
    uint32_t number;     /* a key of four bytes */
    uint64_t start, end; /* not the first column */
};

static void test_places(void **state)
{
    (void)state;
    static const struct item items[] = {
        {0, 10, 15}, {1, 20, 20}, {2, 20, 30}, {3, 20, 40}, {4, 50, UINT64_MAX}};
    static const struct {
        uint64_t value;
        size_t by_start, by_end;
    } rows[] = {
        {0, 0, 0},                                  /* before the first */
        {9, 0, 0},          {10, 1, 0},             /* the first itself */
        {15, 1, 1},         {19, 1, 1}, {20, 4, 2}, /* after all equal items */
        {21, 4, 2},         {49, 4, 4}, {50, 5, 4}, /* the last */
        {UINT64_MAX, 5, 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(UPPER_BOUND(items, 5, start, rows[i].value), rows[i].by_start);
        assert_int_equal(UPPER_BOUND(items, 5, end, rows[i].value), rows[i].by_end);
    }
    for (uint64_t value = 0; value < 7; value++)
        assert_int_equal(UPPER_BOUND(items, 5, number, value), value < 5 ? value + 1 : 5);
    assert_int_equal(UPPER_BOUND(items, 5, number, (uint64_t)1 << 32), 5);
}

static void test_finds_the_last_that_is_equal(void **state)
{
    (void)state;
    static const struct item items[] = {{0, 10, 15}, {1, 20, 20}, {2, 20, 30}, {4, 50, UINT64_MAX}};
    assert_ptr_equal(FIND_SORTED(items, 4, start, 10), &items[0]);
    assert_ptr_equal(FIND_SORTED(items, 4, start, 20), &items[2]);
    assert_ptr_equal(FIND_SORTED(items, 4, end, UINT64_MAX), &items[3]);
    assert_null(FIND_SORTED(items, 4, start, 0));
    assert_null(FIND_SORTED(items, 4, start, 21));
    assert_null(FIND_SORTED(items, 4, start, 51));
    assert_ptr_equal(FIND_SORTED(items, 4, number, 4), &items[3]);
    assert_null(FIND_SORTED(items, 4, number, 3));
    assert_null(FIND_SORTED(items, 4, number, (uint64_t)1 << 32));
    assert_null(FIND_SORTED(items, 0, number, 0));
}

static void test_empty(void **state)
{
    (void)state;
    const struct item *none = NULL;
    assert_int_equal(UPPER_BOUND(none, 0, start, 0), 0);
    assert_int_equal(UPPER_BOUND(none, 0, start, UINT64_MAX), 0);
}

/* For arrays of any length, the values before, at and after each item. */
static void test_every_count(void **state)
{
    (void)state;
    uint64_t numbers[70];
    uint32_t small_numbers[70];
    for (size_t i = 0; i < 70; i++)
        numbers[i] = small_numbers[i] = (uint32_t)(2 * i + 1);
    for (size_t count = 0; count <= 70; count++) {
        for (uint64_t value = 0; value < 142; value++) {
            size_t expected = (value + 1) / 2 < count ? (value + 1) / 2 : count;
            assert_int_equal(upper_bound(numbers, count, 8, 0, 8, value), expected);
            assert_int_equal(upper_bound(small_numbers, count, 4, 0, 4, value), expected);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_finds_the_last_that_is_equal),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_every_count),
    };
    return cmocka_run_group_tests_name("upper_bound", tests, NULL, NULL);
}
