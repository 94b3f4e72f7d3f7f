#include "unit.h"
#include "proc/tids.h"

static void test_which_are_there(void **state)
{
    (void)state;
    pid_t tids[] = {4194304, 7, 30, 8, 2};
    qsort(tids, 5, sizeof *tids, tids_compare);
    for (size_t i = 1; i < 5; i++)
        assert_true(tids[i - 1] < tids[i]);
    static const pid_t absent[] = {-7, 0, 1, 3, 6, 9, 29, 31, 4194303, 4194305, INT32_MAX};
    for (size_t count = 0; count <= 5; count++) {
        for (size_t i = 0; i < 5; i++)
            assert_int_equal(tids_have(tids, count, tids[i]), i < count);
        for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
            assert_false(tids_have(tids, count, absent[i]));
    }
    assert_false(tids_have(NULL, 0, 7));
}

static void test_negative_numbers(void **state)
{
    (void)state;
    static const pid_t tids[] = {INT32_MIN, -9, -7, 7, 8};
    for (size_t i = 0; i < 5; i++)
        assert_true(tids_have(tids, 5, tids[i]));
    assert_false(tids_have(tids, 5, -8));
    assert_false(tids_have(tids, 5, 9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_are_there),
        cmocka_unit_test(test_negative_numbers),
    };
    return cmocka_run_group_tests_name("tids", tests, NULL, NULL);
}
