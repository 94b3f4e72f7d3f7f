#include "unit.h"
#include "base/renumber.h"

static void test_rows_that_stay_keep_their_order(void **state)
{
    (void)state;
    struct renumber rows;
    int items[] = {10, 11, 12, 13, 14};
    assert_int_equal(renumber_init(&rows, 5), 0);
    renumber_keep(&rows, 4);
    renumber_keep(&rows, 1);
    renumber_keep(&rows, 2);
    renumber_keep(&rows, 1);
    assert_int_equal(renumber_kept(&rows), 3);
    renumber_assign(&rows);
    assert_int_equal(renumber_kept(&rows), 3);
    renumber_move(&rows, items, sizeof *items);
    assert_int_equal(items[0], 11);
    assert_int_equal(items[1], 12);
    assert_int_equal(items[2], 14);
    assert_int_equal(renumber_of(&rows, 0), ROW_GONE);
    assert_int_equal(renumber_of(&rows, 1), 0);
    assert_int_equal(renumber_of(&rows, 3), ROW_GONE);
    assert_int_equal(renumber_of(&rows, 4), 2);
    assert_int_equal(renumber_plus_1(&rows, 0), 0);
    assert_int_equal(renumber_plus_1(&rows, 1), 0);
    assert_int_equal(renumber_plus_1(&rows, 5), 3);
    renumber_free(&rows);
}

static void test_numbers_that_no_row_has(void **state)
{
    (void)state;
    struct renumber rows;
    assert_int_equal(renumber_init(&rows, 2), 0);
    renumber_keep(&rows, 2);
    renumber_keep(&rows, UINT32_MAX);
    renumber_assign(&rows);
    assert_int_equal(renumber_kept(&rows), 0);
    assert_int_equal(renumber_of(&rows, 2), 2);
    assert_int_equal(renumber_of(&rows, UINT32_MAX), UINT32_MAX);
    renumber_free(&rows);
    assert_int_equal(renumber_init(&rows, 0), 0);
    assert_int_equal(renumber_of(&rows, 0), 0);
    renumber_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_that_stay_keep_their_order),
        cmocka_unit_test(test_numbers_that_no_row_has),
    };
    return cmocka_run_group_tests_name("renumber", tests, NULL, NULL);
}
