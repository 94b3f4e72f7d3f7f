/* When names of threads are read again, and the effects of a new name. The threads are our own. */
#include "one_thread.h"
#include "sampler/naming.h"
#include "sampler/report.h"

#include <sys/prctl.h>

static int set_up(void **state)
{
    prctl(PR_SET_NAME, "first");
    *state = one_thread_new(getpid());
    return 0;
}

static void first(struct one_thread *world)
{
    naming_first(&world->sampler, &world->process, &world->thread);
}

static void look(struct one_thread *world, uint64_t tick)
{
    assert_int_equal(naming_again(&world->sampler, &world->process, &world->thread, tick), 0);
    world->thread.schedule.looked_tick = tick;
}

/* Looks at that tick, and then reads names that are due. */
static void again(struct one_thread *world, uint64_t tick)
{
    look(world, tick);
    assert_int_equal(naming_take_due(&world->sampler, &world->process), 0);
}

static void test_it_is_read_at_the_first_look(void **state)
{
    struct one_thread *world = *state;
    first(world);
    again(world, 0);
    assert_string_equal(world->thread.naming.name, "first");
    assert_true(world->thread.naming.has_news);
    assert_true(world->thread.naming.next_tick > 0);
}

/* A round's tick is older than the name of a thread that appeared during the round. */
static void test_a_name_that_is_younger_than_the_tick(void **state)
{
    struct one_thread *world = *state;
    first(world);
    world->thread.naming.named_tick = 1001;
    again(world, 1000);
    assert_int_equal(world->thread.naming.next_tick, 1001);
}

/* The older a name, the less often it is read: at twice its age, and at the latest after a
 * second. */
static void test_the_older_the_less_often(void **state)
{
    struct one_thread *world = *state;
    first(world);
    unsigned reads = 0;
    uint64_t last = 0;
    for (uint64_t tick = 0; tick < 1000; tick++) {
        if (tick < world->thread.naming.next_tick)
            continue;
        again(world, tick);
        assert_in_range(world->thread.naming.next_tick - tick, 1, tick + 1 < 100 ? tick + 1 : 100);
        last = tick;
        reads++;
    }
    assert_in_range(reads, 10, 40);
    assert_true(last >= 900);
}

static void test_a_process_at_rest_keeps_its_names(void **state)
{
    struct one_thread *world = *state;
    struct thread_naming *naming = &world->thread.naming;
    world->process.activity_check.cpu_ns = 5000;
    first(world);
    again(world, 0);
    prctl(PR_SET_NAME, "second");
    uint64_t due_tick = naming->next_tick;
    again(world, due_tick);
    assert_string_equal(naming->name, "first");
    assert_true(naming->next_tick > due_tick);
    world->process.activity_check.cpu_ns = 5001;
    again(world, naming->next_tick);
    assert_string_equal(naming->name, "second");
}

static void test_another_name_is_another_sample(void **state)
{
    struct one_thread *world = *state;
    first(world);
    again(world, 0);
    world->thread.naming.has_news = world->thread.wants.copy = false;
    world->thread.phase = PHASE_ASLEEP;
    prctl(PR_SET_NAME, "second");
    look(world, world->thread.naming.next_tick);
    assert_string_equal(world->thread.naming.name, "first"); /* the look did not need it */
    again(world, world->thread.naming.next_tick);
    assert_string_equal(world->thread.naming.name, "second");
    assert_true(world->thread.naming.has_news && world->thread.wants.copy);
    assert_int_equal(world->thread.phase, PHASE_AWAKE);
}

static enum evidence next_evidence(struct one_thread *world)
{
    struct message message;
    assert_true(channel_receive(world->sampler.channel, false, &message));
    return message.observation.evidence;
}

static void test_a_choice_by_name(void **state)
{
    struct one_thread *world = *state;
    struct thread_naming *naming = &world->thread.naming;
    const struct reading begin = {.at_ns = 1};
    assert_int_equal(thread_choice_set_name(&world->options.choice, "first"), 0);
    first(world);
    report_begin(&world->thread, &begin);
    assert_int_not_equal(world->thread.phase, PHASE_UNWANTED);
    assert_int_equal(world->sampler.counts.threads_chosen, 1);
    prctl(PR_SET_NAME, "second");
    look(world, naming->next_tick);
    assert_int_equal(world->thread.phase, PHASE_UNWANTED);
    assert_int_equal(next_evidence(world), EVIDENCE_GONE);
    assert_int_equal(world->thread.schedule.next_look_tick, naming->next_tick);
    prctl(PR_SET_NAME, "first");
    look(world, naming->next_tick);
    assert_int_equal(world->thread.phase, PHASE_AWAKE);
    assert_false(world->thread.life.is_reported);
    assert_true(world->thread.life.begin.at_ns > 1);
    assert_int_equal(world->sampler.counts.threads_chosen, 1); /* the same thread */
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, one_thread_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_it_is_read_at_the_first_look),
        IN_WORLD(test_a_name_that_is_younger_than_the_tick),
        IN_WORLD(test_the_older_the_less_often),
        IN_WORLD(test_a_process_at_rest_keeps_its_names),
        IN_WORLD(test_another_name_is_another_sample),
        IN_WORLD(test_a_choice_by_name),
    };
    return cmocka_run_group_tests_name("naming", tests, NULL, NULL);
}
