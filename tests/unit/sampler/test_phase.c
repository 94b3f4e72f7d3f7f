/* What is done with a thread next, by what is seen of it. */
#include "unit.h"
#include "sampler/phase.h"

static enum thread_phase after(enum thread_phase phase, const enum phase_event *events,
                               size_t count)
{
    for (size_t i = 0; i < count; i++)
        phase = phase_after(phase, events[i]);
    return phase;
}
#define AFTER(phase, ...)                                                                          \
    after(phase, (const enum phase_event[]){__VA_ARGS__},                                          \
          sizeof((const enum phase_event[]){__VA_ARGS__}) / sizeof(enum phase_event))

static void test_a_thread_is_looked_at_once_its_begin_is_read(void **state)
{
    (void)state;
    assert_int_equal(AFTER(PHASE_LISTED, EVENT_SLEPT_ON), PHASE_LISTED);
    assert_int_equal(AFTER(PHASE_LISTED, EVENT_STOP_WANTED), PHASE_LISTED);
    assert_int_equal(AFTER(PHASE_LISTED, EVENT_BEGIN_READ), PHASE_AWAKE);
    /* A begin that is read again changes nothing. */
    assert_int_equal(AFTER(PHASE_ASLEEP, EVENT_BEGIN_READ), PHASE_ASLEEP);
}

static void test_it_sleeps_until_it_moves(void **state)
{
    (void)state;
    assert_int_equal(AFTER(PHASE_AWAKE, EVENT_SLEPT_ON), PHASE_ASLEEP);
    assert_int_equal(AFTER(PHASE_ASLEEP, EVENT_SLEPT_ON), PHASE_ASLEEP);
    assert_int_equal(AFTER(PHASE_ASLEEP, EVENT_MOVED), PHASE_AWAKE);
}

static void test_a_stop_goes_to_its_end(void **state)
{
    (void)state;
    static const enum thread_phase from[] = {PHASE_AWAKE, PHASE_ASLEEP};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(AFTER(from[i], EVENT_STOP_WANTED), PHASE_TO_STOP);
        assert_int_equal(AFTER(from[i], EVENT_STOP_WANTED, EVENT_STOP_BEGUN), PHASE_STOPPING);
    }
    /* What else is seen or asked meanwhile does not end it. */
    assert_int_equal(
        AFTER(PHASE_STOPPING, EVENT_MOVED, EVENT_SLEPT_ON, EVENT_STOP_WANTED, EVENT_NAME_UNWANTED),
        PHASE_STOPPING);
    assert_int_equal(AFTER(PHASE_TO_STOP, EVENT_MOVED, EVENT_SLEPT_ON), PHASE_TO_STOP);
    assert_int_equal(AFTER(PHASE_STOPPING, EVENT_STOP_OVER), PHASE_AWAKE);
    assert_int_equal(AFTER(PHASE_TO_STOP, EVENT_STOP_OVER), PHASE_AWAKE);
    /* A stop that never began can't be over. */
    assert_int_equal(AFTER(PHASE_ASLEEP, EVENT_STOP_BEGUN, EVENT_STOP_OVER), PHASE_ASLEEP);
}

static void test_an_unwanted_thread_is_left_alone_until_it_has_another_name(void **state)
{
    (void)state;
    static const enum thread_phase from[] = {PHASE_LISTED, PHASE_AWAKE, PHASE_ASLEEP,
                                             PHASE_TO_STOP};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(AFTER(from[i], EVENT_NAME_UNWANTED), PHASE_UNWANTED);
    for (enum phase_event event = 0; event < PHASE_EVENTS; event++) {
        enum thread_phase phase = event == EVENT_NAME_WANTED ? PHASE_AWAKE : PHASE_UNWANTED;
        assert_int_equal(AFTER(PHASE_UNWANTED, event), phase);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_is_looked_at_once_its_begin_is_read),
        cmocka_unit_test(test_it_sleeps_until_it_moves),
        cmocka_unit_test(test_a_stop_goes_to_its_end),
        cmocka_unit_test(test_an_unwanted_thread_is_left_alone_until_it_has_another_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
