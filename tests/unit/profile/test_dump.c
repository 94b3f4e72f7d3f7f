#include "unit.h"
#include "profile/dump.h"

#define NOBODY DUMP_NOBODY

static void test_none(void **state)
{
    (void)state;
    const size_t waits_for[] = {1, 2, NOBODY, 2, NOBODY};
    size_t cycles[5];
    assert_int_equal(deadlocks_find(waits_for, 0, cycles), 0);
    assert_int_equal(deadlocks_find(waits_for, 5, cycles), 0);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(cycles[i], 0);
}

/* 0 waits for one in the cycle 3 4 1; 5 waits for itself, 6 waits for 5; 7 and 8 wait for each
 * other. */
static void test_several(void **state)
{
    (void)state;
    const size_t waits_for[] = {3, 3, NOBODY, 4, 1, 5, 5, 8, 7};
    const size_t expected[] = {0, 1, 0, 1, 1, 2, 0, 3, 3};
    size_t cycles[9];
    assert_int_equal(deadlocks_find(waits_for, 9, cycles), 3);
    assert_memory_equal(cycles, expected, sizeof expected);
}

static void test_a_cycle_of_all(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    size_t waits_for[COUNT], cycles[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        waits_for[i] = (i + 1) % COUNT;
    assert_int_equal(deadlocks_find(waits_for, COUNT, cycles), 1);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(cycles[i], 1);
}

static void test_the_first_thread_of_a_deadlock(void **state)
{
    (void)state;
    struct dump_thread threads[] = {
        {.deadlock = 0}, {.deadlock = 2}, {.deadlock = 1}, {.deadlock = 2}, {.deadlock = 1}};
    const struct fgprof_dump dump = {.threads = threads, .thread_count = 5, .deadlock_count = 2};
    assert_ptr_equal(dump_first_of_deadlock(&dump, 1), &threads[2]);
    assert_ptr_equal(dump_first_of_deadlock(&dump, 2), &threads[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_a_cycle_of_all),
        cmocka_unit_test(test_the_first_thread_of_a_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
