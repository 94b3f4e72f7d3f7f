/* Numbers of threads. */
#include "unit.h"
#include "sampler/numbers.h"

#define PROCESS ((struct sampled_process *)0x10) /* it is only compared */

static uint32_t give(struct numbers *numbers, pid_t tid)
{
    uint32_t number;
    assert_int_equal(numbers_give(numbers, PROCESS, tid, &number), 0);
    return number;
}

static void test_they_are_small_and_given_again(void **state)
{
    (void)state;
    struct numbers numbers = {0};
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(give(&numbers, 1000 + (pid_t)i), i);
    numbers_take_back(&numbers, 42);
    assert_null(numbers_find(&numbers, 42, 1042));
    assert_int_equal(give(&numbers, 7), 42);
    assert_int_equal(give(&numbers, 8), 100);
    assert_ptr_equal(numbers_find(&numbers, 42, 7), PROCESS);
    numbers_free(&numbers);
}

static void test_a_number_that_is_another_threads_by_now(void **state)
{
    (void)state;
    struct numbers numbers = {0};
    uint32_t number = give(&numbers, 5);
    numbers_take_back(&numbers, number);
    assert_int_equal(give(&numbers, 6), number);
    assert_null(numbers_find(&numbers, number, 5));
    assert_non_null(numbers_find(&numbers, number, 6));
    assert_null(numbers_find(&numbers, 1, 6));
    numbers_free(&numbers);
}

static void test_a_number_that_is_withheld(void **state)
{
    (void)state;
    struct numbers numbers = {0};
    uint32_t number = give(&numbers, 5);
    numbers_withhold(&numbers, number);
    assert_null(numbers_find(&numbers, number, 5));
    assert_int_not_equal(give(&numbers, 6), number);
    numbers_take_back(&numbers, number);
    assert_int_equal(give(&numbers, 7), number);
    numbers_free(&numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_they_are_small_and_given_again),
        cmocka_unit_test(test_a_number_that_is_another_threads_by_now),
        cmocka_unit_test(test_a_number_that_is_withheld),
    };
    return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
