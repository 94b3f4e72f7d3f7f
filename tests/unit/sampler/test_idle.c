/* Whether threads have moved since the recording began. */
#include "unit.h"
#include "sampler/idle.h"

static struct snapshot snapshot;

static struct observation seen(uint64_t switches, uint64_t pc, uint64_t sp)
{
    struct observation observation = {.snapshot = &snapshot, .now.activity.switches = switches};
    registers_set(&snapshot.registers, architecture.pc, pc);
    registers_set(&snapshot.registers, architecture.sp, sp);
    return observation;
}

static struct thread_idle unmoved(void)
{
    return (struct thread_idle){.first_switches = 5};
}

static void test_asleep_at_the_same_count(void **state)
{
    (void)state;
    struct thread_idle idle = unmoved();
    struct observation observation = seen(5, 1, 2);
    idle_note_look(&idle, OUTCOME_OBSERVED, &observation);
    idle_note_look(&idle, OUTCOME_UNMOVED, &observation);
    assert_false(idle.has_moved);
    observation = seen(6, 1, 2);
    idle_note_look(&idle, OUTCOME_OBSERVED, &observation);
    assert_true(idle.has_moved);
}

static void test_any_other_outcome_is_a_move(void **state)
{
    (void)state;
    static const enum outcome outcomes[] = {OUTCOME_RUNNING, OUTCOME_GONE, OUTCOME_REFUSED};
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
        struct thread_idle idle = unmoved();
        const struct observation observation = seen(5, 1, 2);
        idle_note_look(&idle, outcomes[i], &observation);
        assert_true(idle.has_moved);
    }
}

/* A stop to read its registers wakes the thread; it goes back to sleep with another count. */
static void test_a_stop_in_its_sleep_is_no_move(void **state)
{
    (void)state;
    struct thread_idle idle = unmoved();
    struct observation stop = seen(5, 0x400, 0x7000), look;
    stop.stop.asked = (struct sleep_place){.pc = 0x400, .sp = 0x7000};
    idle_note_stop(&idle, &stop);
    assert_false(idle.has_moved);
    look = seen(6, 0x400, 0x7000);
    idle_note_look(&idle, OUTCOME_RUNNING, &look); /* on its way back */
    assert_false(idle.has_moved);
    idle_note_look(&idle, OUTCOME_OBSERVED, &look);
    assert_false(idle.has_moved);
    assert_int_equal(idle.first_switches, 6);
    look = seen(7, 0x400, 0x7000);
    idle_note_look(&idle, OUTCOME_OBSERVED, &look);
    assert_true(idle.has_moved);
}

/* The record shows where it was at a tick: in our stop, and then waiting for a CPU. */
static void test_it_is_not_back_while_it_is_stopped(void **state)
{
    (void)state;
    struct thread_idle idle = unmoved();
    struct observation stop = seen(5, 0x400, 0x7000), look;
    stop.stop.asked = (struct sleep_place){.pc = 0x400, .sp = 0x7000};
    idle_note_stop(&idle, &stop);
    look = seen(6, 0x400, 0x7000);
    look.state = THREAD_STOPPED;
    idle_note_look(&idle, OUTCOME_OBSERVED, &look);
    look.state = THREAD_SLEEPING;
    look.record.woken_ns = 1;
    idle_note_look(&idle, OUTCOME_OBSERVED, &look);
    look = seen(8, 0x400, 0x7000);
    idle_note_look(&idle, OUTCOME_OBSERVED, &look); /* asleep again */
    assert_false(idle.has_moved);
    assert_int_equal(idle.first_switches, 8);
}

static void test_it_had_gone_on_when_it_was_stopped(void **state)
{
    (void)state;
    struct thread_idle idle = unmoved();
    struct observation stop = seen(5, 0x500, 0x7000);
    stop.stop.asked = (struct sleep_place){.pc = 0x400, .sp = 0x7000};
    idle_note_stop(&idle, &stop);
    assert_true(idle.has_moved);
}

/* The thread is found elsewhere after the stop, so its wait has ended. */
static void test_it_sleeps_elsewhere_after_the_stop(void **state)
{
    (void)state;
    struct thread_idle idle = unmoved();
    struct observation stop = seen(5, 0x400, 0x7000), look;
    stop.stop.asked = (struct sleep_place){.pc = 0x400, .sp = 0x7000};
    idle_note_stop(&idle, &stop);
    look = seen(6, 0x400, 0x6ff0);
    idle_note_look(&idle, OUTCOME_OBSERVED, &look);
    assert_true(idle.has_moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asleep_at_the_same_count),
        cmocka_unit_test(test_any_other_outcome_is_a_move),
        cmocka_unit_test(test_a_stop_in_its_sleep_is_no_move),
        cmocka_unit_test(test_it_is_not_back_while_it_is_stopped),
        cmocka_unit_test(test_it_had_gone_on_when_it_was_stopped),
        cmocka_unit_test(test_it_sleeps_elsewhere_after_the_stop),
    };
    return cmocka_run_group_tests_name("idle", tests, NULL, NULL);
}
