/* Which threads wait much for a CPU. The kernel may not sample them here, so none gets an event. */
#include "unit.h"
#include "one_thread.h"
#include "sampler/subject.h"
#include "sampler/switch_events.h"

#define MS 1000000u

static int set_up(void **state)
{
    *state = one_thread_new(getppid());
    return 0;
}

/* `waiting_ns` is how long the thread has waited in total, at that time. */
static bool waits_after(struct one_thread *world, uint64_t at_ns, uint64_t waiting_ns)
{
    const struct reading look = {
        .at_ns = at_ns, .has_activity = true, .activity = {.waiting_ns = waiting_ns}};
    switch_events_note_look(&world->sampler, &world->process, &world->thread, &look);
    return subject_of(&world->sampler, &world->process, &world->thread).waits_for_cpu;
}

static void test_one_that_waits_much(void **state)
{
    struct one_thread *world = *state;
    assert_false(waits_after(world, 1000 * MS, 500 * MS));
    assert_false(waits_after(world, 1050 * MS, 510 * MS)); /* not long enough to know */
    assert_true(waits_after(world, 1100 * MS, 510 * MS));
    assert_true(waits_after(world, 1150 * MS, 510 * MS));
    assert_false(waits_after(world, 1200 * MS, 511 * MS));
}

/* Another thread executed a program, and got its id. */
static void test_another_thread_by_that_id(void **state)
{
    struct one_thread *world = *state;
    assert_false(waits_after(world, 1000 * MS, 500 * MS));
    assert_false(waits_after(world, 1100 * MS, 100 * MS));
    assert_true(waits_after(world, 1200 * MS, 150 * MS));
}

static void test_what_has_no_times(void **state)
{
    struct one_thread *world = *state;
    struct reading look = {.at_ns = 1000 * MS};
    switch_events_note_look(&world->sampler, &world->process, &world->thread, &look);
    look = (struct reading){1000 * MS, true, {.counts_ends = true}};
    switch_events_note_look(&world->sampler, &world->process, &world->thread, &look);
    assert_false(waits_after(world, 1200 * MS, 100 * MS));
    assert_true(waits_after(world, 1300 * MS, 103 * MS));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, one_thread_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_that_waits_much),
        TEST(test_another_thread_by_that_id),
        TEST(test_what_has_no_times),
    };
    return cmocka_run_group_tests_name("switch_events", tests, NULL, NULL);
}
