/* Whether a thread that was found awake slept at the tick, by how long it waited for a CPU. */
#include "unit.h"
#include "observe/woken.h"

#define TICK_NS 1000000u

static struct reading reading(uint64_t waiting_ns)
{
    return (struct reading){.has_activity = true, .activity = {.waiting_ns = waiting_ns}};
}

static bool woken(uint64_t tick_ns, uint64_t waited_ns, uint64_t stopped_ns)
{
    const struct reading look = reading(5000), stopped = reading(5000 + waited_ns);
    return woken_after(tick_ns, &look, &stopped, stopped_ns);
}

static void test_a_wait_that_began_after_the_tick(void **state)
{
    (void)state;
    assert_true(woken(TICK_NS, 40000, TICK_NS + 100000));
    assert_true(woken(TICK_NS, 99999, TICK_NS + 100000));
    /* It waited at the tick already. */
    assert_false(woken(TICK_NS, 100000, TICK_NS + 100000));
    assert_false(woken(TICK_NS, 500000, TICK_NS + 100000));
    assert_false(woken(TICK_NS, 5 * TICK_NS, TICK_NS + 100000));
}

static void test_a_thread_that_ran_on(void **state)
{
    (void)state;
    assert_false(woken(TICK_NS, 0, TICK_NS + 100000));
}

static void test_what_can_not_be_known(void **state)
{
    (void)state;
    struct reading look = reading(0), stopped = reading(40000);
    assert_false(woken(0, 40000, TICK_NS + 100000)); /* a dump has no ticks */
    look.has_activity = false;
    assert_false(woken_after(TICK_NS, &look, &stopped, TICK_NS + 100000));
    look.has_activity = true;
    stopped.has_activity = false;
    assert_false(woken_after(TICK_NS, &look, &stopped, TICK_NS + 100000));
    stopped.has_activity = true;
    assert_true(woken_after(TICK_NS, &look, &stopped, TICK_NS + 100000));
    look.activity.counts_ends = stopped.activity.counts_ends = true; /* then there are no times */
    assert_false(woken_after(TICK_NS, &look, &stopped, TICK_NS + 100000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wait_that_began_after_the_tick),
        cmocka_unit_test(test_a_thread_that_ran_on),
        cmocka_unit_test(test_what_can_not_be_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
