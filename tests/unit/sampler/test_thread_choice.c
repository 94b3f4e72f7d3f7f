#include "unit.h"
#include "sampler/thread_choice.h"

#include <errno.h>

static void test_all_are_wanted(void **state)
{
    (void)state;
    struct thread_choice choice = {0};
    assert_true(thread_choice_is_all(&choice));
    assert_true(thread_choice_has(&choice, 7, "any"));
    thread_choice_free(&choice);
}

static void test_by_name(void **state)
{
    (void)state;
    struct thread_choice choice = {0};
    assert_int_equal(thread_choice_set_name(&choice, "^(pool|io)-[0-9]+$"), 0);
    assert_false(thread_choice_is_all(&choice));
    assert_true(thread_choice_has(&choice, 7, "pool-12"));
    assert_true(thread_choice_has(&choice, 7, "io-1"));
    assert_false(thread_choice_has(&choice, 7, "io-"));
    assert_false(thread_choice_has(&choice, 7, "my io-1"));
    assert_false(thread_choice_has(&choice, 7, ""));
    /* Another regex replaces it. */
    assert_int_equal(thread_choice_set_name(&choice, "io"), 0);
    assert_true(thread_choice_has(&choice, 7, "my io-1"));
    assert_false(thread_choice_has(&choice, 7, "pool-12"));
    thread_choice_free(&choice);
}

static void test_not_a_regular_expression(void **state)
{
    (void)state;
    struct thread_choice choice = {0};
    assert_int_equal(thread_choice_set_name(&choice, "(a"), -EINVAL);
    assert_true(thread_choice_is_all(&choice));
    assert_int_equal(thread_choice_set_name(&choice, "a"), 0);
    assert_int_equal(thread_choice_set_name(&choice, "[b"), -EINVAL);
    assert_true(thread_choice_has(&choice, 7, "a"));
    thread_choice_free(&choice);
}

static void test_by_id_or_name(void **state)
{
    (void)state;
    struct thread_choice choice = {0};
    assert_int_equal(thread_choice_add_tid(&choice, 7), 0);
    assert_int_equal(thread_choice_add_tid(&choice, 5), 0);
    assert_true(thread_choice_has(&choice, 5, "a"));
    assert_true(thread_choice_has(&choice, 7, "a"));
    assert_false(thread_choice_has(&choice, 6, "a"));
    assert_int_equal(thread_choice_set_name(&choice, "a"), 0);
    assert_true(thread_choice_has(&choice, 6, "a"));
    assert_true(thread_choice_has(&choice, 7, "b"));
    assert_false(thread_choice_has(&choice, 6, "b"));
    thread_choice_free(&choice);
}

static void test_copy_outlives_its_original(void **state)
{
    (void)state;
    struct thread_choice choice = {0}, copy;
    assert_int_equal(thread_choice_set_name(&choice, "^a"), 0);
    assert_int_equal(thread_choice_add_tid(&choice, 7), 0);
    assert_int_equal(thread_choice_copy(&choice, &copy), 0);
    thread_choice_free(&choice);
    assert_true(thread_choice_has(&copy, 6, "ab"));
    assert_true(thread_choice_has(&copy, 7, "b"));
    assert_false(thread_choice_has(&copy, 6, "b"));
    thread_choice_free(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_wanted),
        cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_not_a_regular_expression),
        cmocka_unit_test(test_by_id_or_name),
        cmocka_unit_test(test_copy_outlives_its_original),
    };
    return cmocka_run_group_tests_name("thread_choice", tests, NULL, NULL);
}
