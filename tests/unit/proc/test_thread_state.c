#include "unit.h"
#include "proc/thread_state.h"

static void test_letters(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum thread_state state;
    } lines[] = {
        {"1234 (app) R 1 1234 1234 0 -1 4194560\n", THREAD_RUNNABLE},
        {"1234 (app) S 1 1234 1234 0 -1 4194560\n", THREAD_SLEEPING},
        {"1234 (app) D 1 1234 1234 0 -1 4194560\n", THREAD_UNINTERRUPTIBLE},
        {"1234 (app) T 1 1234 1234 0 -1 4194560\n", THREAD_STOPPED},
        {"1234 (app) t 1 1234 1234 0 -1 4194560\n", THREAD_STOPPED},
        {"2 (kthreadd) I 0 0 0 0 -1 2129984\n", THREAD_SLEEPING},
        {"1234 (app) Z 1 1234 1234 0 -1 4194560\n", THREAD_UNKNOWN},
        {"1234 (app) X 1 1234 1234 0 -1 4194560\n", THREAD_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(thread_state_of_stat(lines[i].line), lines[i].state);
}

static void test_names_that_look_like_a_state(void **state)
{
    (void)state;
    assert_int_equal(thread_state_of_stat("1 (a) D) S 1 1 1"), THREAD_SLEEPING);
    assert_int_equal(thread_state_of_stat("1 () () T 1 1 1"), THREAD_STOPPED);
    assert_int_equal(thread_state_of_stat("1 (R S) D 1 1 1"), THREAD_UNINTERRUPTIBLE);
}

static void test_no_stat(void **state)
{
    (void)state;
    static const char *const lines[] = {"", "\n", "S", "1 (app", "1 (app)", "1 (app) ", "1 (app)S"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(thread_state_of_stat(lines[i]), THREAD_UNKNOWN);
}

static void test_who_waits(void **state)
{
    (void)state;
    assert_true(thread_state_waits(THREAD_SLEEPING));
    assert_true(thread_state_waits(THREAD_UNINTERRUPTIBLE));
    assert_false(thread_state_waits(THREAD_UNKNOWN));
    assert_false(thread_state_waits(THREAD_RUNNING));
    assert_false(thread_state_waits(THREAD_RUNNABLE));
    assert_false(thread_state_waits(THREAD_STOPPED));
}

static void test_a_wait_from_before_we_woke_is_one_for_a_cpu(void **state)
{
    (void)state;
    assert_int_equal(thread_state_by_wait(3000000, 200000), THREAD_RUNNABLE);
    assert_int_equal(thread_state_by_wait(400000, 200000), THREAD_RUNNABLE);
}

static void test_a_wait_that_we_may_have_caused_is_not(void **state)
{
    (void)state;
    assert_int_equal(thread_state_by_wait(0, 0), THREAD_RUNNING);
    assert_int_equal(thread_state_by_wait(0, 200000), THREAD_RUNNING);
    assert_int_equal(thread_state_by_wait(200000, 200000), THREAD_RUNNING);
    /* A little longer than we have been awake, by our clock. */
    assert_int_equal(thread_state_by_wait(230000, 200000), THREAD_RUNNING);
    /* A long wait, but we have been awake for as long. */
    assert_int_equal(thread_state_by_wait(30000000, 30000000), THREAD_RUNNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_letters),
        cmocka_unit_test(test_names_that_look_like_a_state),
        cmocka_unit_test(test_no_stat),
        cmocka_unit_test(test_who_waits),
        cmocka_unit_test(test_a_wait_from_before_we_woke_is_one_for_a_cpu),
        cmocka_unit_test(test_a_wait_that_we_may_have_caused_is_not),
    };
    return cmocka_run_group_tests_name("thread_state", tests, NULL, NULL);
}
