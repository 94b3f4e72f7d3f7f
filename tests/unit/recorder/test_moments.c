/* Which moments of a recording are kept, and what may be forgotten. */
#include "unit.h"
#include "recorder/moments.h"

#define KEEP_NS 60
#define SECOND 1000000000ull

struct world {
    struct results results;
    struct moments *moments;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    return world ? moments_new(KEEP_NS, true, &world->moments) : -1;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    moments_release(world->moments);
    free(world);
    return 0;
}

/* Each has an epoch of its own, from 0. */
static struct moment *take(struct world *world, uint64_t now_ns)
{
    const struct sampling_state at = {.now_ns = now_ns};
    struct moment *moment;
    assert_int_equal(moment_take(&world->results, &at, 0, &moment), 0);
    world->results.stacks.epoch++;
    return moment;
}

static void keep(struct world *world, uint64_t now_ns)
{
    assert_int_equal(moments_keep(world->moments, take(world, now_ns)), 0);
}

static void assert_begins(struct world *world, const struct fgprof_moment *since, uint64_t begin_ns,
                          uint64_t at_ns)
{
    const struct moment *moment = moments_lock(world->moments, since, begin_ns);
    assert_int_equal(moment ? moment_at_ns(moment) : 0, at_ns);
    moments_unlock(world->moments);
}

static void test_a_profile_reaches_back_far_enough(void **state)
{
    struct world *world = *state;
    struct worker_moments needed;
    assert_begins(world, NULL, 1000, 0);
    for (uint64_t at_ns = 105; at_ns <= 160; at_ns += 5)
        keep(world, at_ns);
    /* The recording is still shorter than what is to be kept of it. */
    assert_false(moments_need(world->moments, false, &needed));
    assert_int_equal(needed.begin_ns, 0);
    assert_begins(world, NULL, 104, 0);
    assert_begins(world, NULL, 105, 105);
    assert_begins(world, NULL, 109, 105);
    keep(world, 165);
    assert_false(moments_need(world->moments, false, &needed));
    keep(world, 170);
    assert_true(moments_need(world->moments, false, &needed));
    assert_int_equal(needed.epoch, 1); /* that of the moment at 110 */
    assert_int_equal(needed.begin_ns, 110);
    assert_begins(world, NULL, 0, 110);
    assert_begins(world, NULL, 112, 110);
    assert_begins(world, NULL, 500, 170);
}

static void test_memory_is_counted(void **state)
{
    struct world *world = *state;
    struct worker_moments one, two;
    keep(world, 5);
    moments_need(world->moments, false, &one);
    keep(world, 10);
    moments_need(world->moments, false, &two);
    assert_true(one.bytes > 0);
    assert_int_equal(two.bytes, 2 * one.bytes);
}

/* What a caller's moment needs stays, unless there is no room. */
static void test_moments_that_callers_hold(void **state)
{
    struct world *world = *state;
    struct worker_moments needed;
    struct fgprof_moment *first, *second;
    assert_int_equal(moments_hold(world->moments, take(world, 100), &first), 0);
    assert_int_equal(moments_hold(world->moments, take(world, 101), &second), 0);
    for (uint64_t at_ns = 105; at_ns <= 400; at_ns += 5)
        keep(world, at_ns);
    assert_true(moments_need(world->moments, false, &needed));
    assert_int_equal(needed.epoch, 0);
    assert_begins(world, first, 0, 100);
    assert_begins(world, second, 0, 101);
    moments_drop(first);
    assert_true(moments_need(world->moments, false, &needed));
    assert_int_equal(needed.epoch, 1);
    assert_true(moments_need(world->moments, true, &needed));
    assert_true(needed.epoch > 1);
    assert_begins(world, second, 0, 340);
    moments_drop(second);
}

static void test_less_is_kept_where_room_is_short(void **state)
{
    struct world *world = *state;
    struct worker_moments needed;
    moments_release(world->moments);
    assert_int_equal(moments_new(60 * SECOND, true, &world->moments), 0);
    assert_false(moments_give_up(world->moments));
    for (uint64_t i = 1; i <= 5; i++)
        keep(world, i * SECOND);
    assert_true(moments_give_up(world->moments)); /* two of five */
    assert_true(moments_need(world->moments, true, &needed));
    assert_int_equal(needed.epoch, 2);
    assert_begins(world, NULL, 0, 3 * SECOND);
    assert_true(moments_give_up(world->moments));
    assert_begins(world, NULL, 0, 4 * SECOND);
    /* The last second stays. */
    assert_false(moments_give_up(world->moments));
    keep(world, 5 * SECOND + SECOND / 2);
    assert_false(moments_give_up(world->moments));
    keep(world, 6 * SECOND);
    assert_true(moments_give_up(world->moments));
    assert_true(moments_need(world->moments, true, &needed));
    assert_int_equal(needed.epoch, 4);
    assert_begins(world, NULL, 0, 5 * SECOND);
}

static void test_a_callers_moment_outlives_the_recorder(void **state)
{
    struct world *world = *state;
    struct fgprof_moment *moment;
    assert_int_equal(moments_hold(world->moments, take(world, 100), &moment), 0);
    moments_release(world->moments);
    world->moments = NULL;
    moments_drop(moment);
}

static void test_nothing_need_be_forgotten(void **state)
{
    struct world *world = *state;
    struct worker_moments needed;
    moments_release(world->moments);
    assert_int_equal(moments_new(KEEP_NS, false, &world->moments), 0);
    for (uint64_t at_ns = 105; at_ns <= 400; at_ns += 5)
        keep(world, at_ns);
    assert_false(moments_need(world->moments, false, &needed));
    assert_int_equal(needed.begin_ns, 340);
    assert_begins(world, NULL, 0, 0);
    assert_begins(world, NULL, 350, 350);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_profile_reaches_back_far_enough),
        TEST(test_memory_is_counted),
        TEST(test_moments_that_callers_hold),
        TEST(test_less_is_kept_where_room_is_short),
        TEST(test_nothing_need_be_forgotten),
        TEST(test_a_callers_moment_outlives_the_recorder),
    };
    return cmocka_run_group_tests_name("moments", tests, NULL, NULL);
}
