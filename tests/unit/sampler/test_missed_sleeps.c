/* Sleeps that ended before a look at them was proven. */
#include "unit.h"
#include "sampler/missed_sleeps.h"

static struct snapshot snapshot;

static struct observation seen(long syscall_number, uint64_t pc, uint64_t sp)
{
    const struct observation observation = {.snapshot = &snapshot,
                                            .wait.syscall_number = syscall_number};
    registers_set(&snapshot.registers, architecture.pc, pc);
    registers_set(&snapshot.registers, architecture.sp, sp);
    return observation;
}

static void note(struct thread_missed_sleeps *missed, long syscall_number, uint64_t pc, uint64_t sp,
                 uint64_t ticks)
{
    const struct observation observation = seen(syscall_number, pc, sp);
    missed_sleeps_note(missed, &observation, ticks);
}

static uint64_t take(struct thread_missed_sleeps *missed, long syscall_number, uint64_t pc,
                     uint64_t sp)
{
    struct observation observation = seen(syscall_number, pc, sp);
    observation.asleep.is_over = true;
    return missed_sleeps_take(missed, &observation);
}

static void test_they_count_once_for_the_same_place(void **state)
{
    (void)state;
    struct thread_missed_sleeps missed = {0};
    assert_int_equal(take(&missed, 1, 0x10, 0x20), 0);
    note(&missed, 1, 0x10, 0x20, 1);
    note(&missed, 1, 0x10, 0x20, 2);
    assert_int_equal(take(&missed, 2, 0x10, 0x20), 0);
    assert_int_equal(take(&missed, 1, 0x11, 0x20), 0);
    assert_int_equal(take(&missed, 1, 0x10, 0x21), 0);
    assert_int_equal(take(&missed, 1, 0x10, 0x20), 3);
    assert_int_equal(take(&missed, 1, 0x10, 0x20), 0);
}

/* Missed sleeps also end soon. */
static void test_they_do_not_count_for_one_that_sleeps_on(void **state)
{
    (void)state;
    struct thread_missed_sleeps missed = {0};
    note(&missed, 1, 0x10, 0x20, 1);
    const struct observation goes_on = seen(1, 0x10, 0x20);
    assert_int_equal(missed_sleeps_take(&missed, &goes_on), 0);
    assert_int_equal(take(&missed, 1, 0x10, 0x20), 1);
}

static void test_the_last_places_are_known(void **state)
{
    (void)state;
    struct thread_missed_sleeps missed = {0};
    for (uint64_t i = 0; i < MISSED_PLACES + 1; i++)
        note(&missed, 1, 0x10 + i, 0x20, 1 + i);
    assert_int_equal(take(&missed, 1, 0x10, 0x20), 0);
    for (uint64_t i = 1; i < MISSED_PLACES + 1; i++)
        assert_int_equal(take(&missed, 1, 0x10 + i, 0x20), 1 + i);
}

static void test_they_are_limited(void **state)
{
    (void)state;
    struct thread_missed_sleeps missed = {0};
    note(&missed, 1, 0x10, 0x20, UINT64_MAX);
    for (unsigned i = 0; i < 1000; i++)
        note(&missed, 1, 0x10, 0x20, 1);
    assert_in_range(take(&missed, 1, 0x10, 0x20), 2, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_they_count_once_for_the_same_place),
        cmocka_unit_test(test_they_do_not_count_for_one_that_sleeps_on),
        cmocka_unit_test(test_the_last_places_are_known),
        cmocka_unit_test(test_they_are_limited),
    };
    return cmocka_run_group_tests_name("missed", tests, NULL, NULL);
}
