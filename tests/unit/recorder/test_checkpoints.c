/* Which checkpoints of a recording are kept, and what may be forgotten. */
#include "unit.h"
#include "recorder/checkpoints.h"
#include "fgprof.h"

#define KEEP_NS 60
#define SECOND 1000000000ull

struct world {
    struct results results;
    struct checkpoints *checkpoints;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    return world ? checkpoints_new(KEEP_NS, true, &world->checkpoints) : -1;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    checkpoints_release(world->checkpoints);
    free(world);
    return 0;
}

/* Each checkpoint has its own epoch, starting with 0. */
static struct checkpoint *take(struct world *world, uint64_t now_ns)
{
    const struct sampling_state at = {.now_ns = now_ns};
    struct checkpoint *checkpoint;
    assert_int_equal(checkpoint_take(&world->results, &at, 0, &checkpoint), 0);
    world->results.stacks.epoch++;
    return checkpoint;
}

static void keep(struct world *world, uint64_t now_ns)
{
    assert_int_equal(checkpoints_keep(world->checkpoints, take(world, now_ns)), 0);
}

static void assert_begins(struct world *world, const struct fgprof_moment *since, uint64_t begin_ns,
                          uint64_t at_ns)
{
    const struct checkpoint *checkpoint = checkpoints_lock(world->checkpoints, since, begin_ns);
    assert_int_equal(checkpoint ? checkpoint_at_ns(checkpoint) : 0, at_ns);
    checkpoints_unlock(world->checkpoints);
}

static void test_a_profile_reaches_back_far_enough(void **state)
{
    struct world *world = *state;
    struct worker_checkpoints needed;
    assert_begins(world, NULL, 1000, 0);
    for (uint64_t at_ns = 105; at_ns <= 160; at_ns += 5)
        keep(world, at_ns);
    /* The recording is still shorter than the part to keep. */
    assert_false(checkpoints_need(world->checkpoints, false, &needed));
    assert_false(needed.are_last);
    assert_int_equal(needed.begin_ns, 0);
    assert_begins(world, NULL, 104, 0);
    assert_begins(world, NULL, 105, 105);
    assert_begins(world, NULL, 109, 105);
    keep(world, 165);
    assert_false(checkpoints_need(world->checkpoints, false, &needed));
    keep(world, 170);
    assert_true(checkpoints_need(world->checkpoints, false, &needed));
    assert_int_equal(needed.epoch, 1); /* the checkpoint at 110 */
    assert_int_equal(needed.begin_ns, 110);
    assert_begins(world, NULL, 0, 110);
    assert_begins(world, NULL, 112, 110);
    assert_begins(world, NULL, 500, 170);
}

static void test_a_profile_may_reach_back_for_ever(void **state)
{
    struct world *world = *state;
    checkpoints_release(world->checkpoints);
    assert_int_equal(checkpoints_new(UINT64_MAX, true, &world->checkpoints), 0);
    for (uint64_t at_ns = 100; at_ns <= 400; at_ns += 100)
        keep(world, at_ns);
    assert_begins(world, NULL, 150, 100);
}

static void test_memory_is_counted(void **state)
{
    struct world *world = *state;
    struct worker_checkpoints one, two;
    keep(world, 5);
    checkpoints_need(world->checkpoints, false, &one);
    keep(world, 10);
    checkpoints_need(world->checkpoints, false, &two);
    assert_true(one.bytes > 0);
    assert_int_equal(two.bytes, 2 * one.bytes);
}

/* What a caller's checkpoint needs is kept, unless memory runs out. */
static void test_checkpoints_that_callers_hold(void **state)
{
    struct world *world = *state;
    struct worker_checkpoints needed;
    struct fgprof_moment *first, *second;
    assert_int_equal(checkpoints_hold(world->checkpoints, take(world, 100), &first), 0);
    assert_int_equal(checkpoints_hold(world->checkpoints, take(world, 101), &second), 0);
    for (uint64_t at_ns = 105; at_ns <= 400; at_ns += 5)
        keep(world, at_ns);
    assert_true(checkpoints_need(world->checkpoints, false, &needed));
    assert_int_equal(needed.epoch, 0);
    assert_begins(world, first, 0, 100);
    assert_begins(world, second, 0, 101);
    fgprof_moment_free(first);
    assert_true(checkpoints_need(world->checkpoints, false, &needed));
    assert_int_equal(needed.epoch, 1);
    assert_true(checkpoints_need(world->checkpoints, true, &needed));
    assert_true(needed.epoch > 1);
    assert_begins(world, second, 0, 340);
    fgprof_moment_free(second);
}

static void test_less_is_kept_where_room_is_short(void **state)
{
    struct world *world = *state;
    struct worker_checkpoints needed;
    checkpoints_release(world->checkpoints);
    assert_int_equal(checkpoints_new(60 * SECOND, true, &world->checkpoints), 0);
    assert_false(checkpoints_give_up(world->checkpoints));
    for (uint64_t i = 1; i <= 5; i++)
        keep(world, i * SECOND);
    assert_true(checkpoints_give_up(world->checkpoints)); /* two of five */
    assert_true(checkpoints_need(world->checkpoints, true, &needed));
    assert_int_equal(needed.epoch, 2);
    assert_begins(world, NULL, 0, 3 * SECOND);
    assert_true(checkpoints_give_up(world->checkpoints));
    assert_begins(world, NULL, 0, 4 * SECOND);
    /* The last second is kept. */
    assert_false(checkpoints_give_up(world->checkpoints));
    keep(world, 5 * SECOND + SECOND / 2);
    assert_false(checkpoints_give_up(world->checkpoints));
    keep(world, 6 * SECOND);
    assert_true(checkpoints_give_up(world->checkpoints));
    assert_true(checkpoints_need(world->checkpoints, true, &needed));
    assert_int_equal(needed.epoch, 4);
    assert_begins(world, NULL, 0, 5 * SECOND);
}

static void test_a_callers_checkpoint_outlives_the_recorder(void **state)
{
    struct world *world = *state;
    struct fgprof_moment *checkpoint;
    assert_int_equal(checkpoints_hold(world->checkpoints, take(world, 100), &checkpoint), 0);
    checkpoints_release(world->checkpoints);
    world->checkpoints = NULL;
    fgprof_moment_free(checkpoint);
}

static void test_nothing_need_be_forgotten(void **state)
{
    struct world *world = *state;
    struct worker_checkpoints needed;
    checkpoints_release(world->checkpoints);
    assert_int_equal(checkpoints_new(KEEP_NS, false, &world->checkpoints), 0);
    for (uint64_t at_ns = 105; at_ns <= 400; at_ns += 5)
        keep(world, at_ns);
    assert_false(checkpoints_need(world->checkpoints, false, &needed));
    assert_true(needed.are_last);
    assert_int_equal(needed.begin_ns, 340);
    assert_begins(world, NULL, 0, 0);
    assert_begins(world, NULL, 350, 350);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_profile_reaches_back_far_enough),
        TEST(test_a_profile_may_reach_back_for_ever),
        TEST(test_memory_is_counted),
        TEST(test_checkpoints_that_callers_hold),
        TEST(test_less_is_kept_where_room_is_short),
        TEST(test_nothing_need_be_forgotten),
        TEST(test_a_callers_checkpoint_outlives_the_recorder),
    };
    return cmocka_run_group_tests_name("checkpoints", tests, NULL, NULL);
}
