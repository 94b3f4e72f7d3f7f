/* Counting reported allocations, from the first one to the end of their process. */
#include "owners_world.h"
#include "worker/objects.h"

#define MAKER 99 /* of threads */

static int take_thread(struct world *world, enum object_change change, enum object_origin origin,
                       uint64_t key, char *name)
{
    struct means means = {.results = &world->results, .max_depth = 10, .tells_threads_apart = true};
    struct stack stack = {0};
    const struct object_news news = {.tid = MAKER,
                                     .kind = OBJECT_THREAD,
                                     .change = change,
                                     .origin = origin,
                                     .key = key,
                                     .weight = 1,
                                     .name = name};
    int err = objects_take(&means, &news, NULL, &stack);
    free(stack.addresses);
    return err;
}

static int take_news(struct world *world, enum object_change change, uint32_t process, uint64_t key,
                     uint64_t bytes)
{
    struct means means = {.results = &world->results, .max_depth = 10};
    struct stack stack = {0};
    const struct object_news news = {.process = process,
                                     .kind = OBJECT_ALLOCATION,
                                     .change = change,
                                     .key = key,
                                     .bytes = bytes,
                                     .weight = 1};
    int err = objects_take(&means, &news, NULL, &stack);
    free(stack.addresses);
    return err;
}

static void tell(struct world *world, enum object_change change, uint32_t process, uint64_t key,
                 uint64_t bytes)
{
    assert_int_equal(take_news(world, change, process, key, bytes), 0);
}

static void assert_row(const struct world *world, size_t row, uint64_t made, uint64_t gone)
{
    const struct objects *objects = &world->results.objects;
    assert_true(row < objects->maker_count);
    assert_int_equal(objects->makers[row].made, made);
    assert_int_equal(objects->makers[row].gone, gone);
}

static void test_they_come_and_go(void **state)
{
    struct world *world = *state;
    tell(world, OBJECT_GONE, 0, 5, 0); /* allocated before the recording */
    tell(world, OBJECT_MADE, 0, 5, 64);
    tell(world, OBJECT_MADE, 0, 6, 64);
    tell(world, OBJECT_MADE, 1, 5, 64);
    tell(world, OBJECT_GONE, 0, 5, 0);
    assert_int_equal(world->results.objects.maker_count, 2);
    assert_row(world, 0, 2, 1);
    assert_row(world, 1, 1, 0);
    const struct object_maker *maker = &world->results.objects.makers[0].maker;
    assert_int_equal(maker->bytes, 64);
    assert_int_equal(maker->kind, OBJECT_ALLOCATION);
    /* An object without a stack has the reason for that. */
    const struct counted_stack *stack = &world->results.stacks.stacks[maker->stack];
    assert_int_equal(stack->depth, 0);
    assert_int_not_equal(stack->cut, STACK_WHOLE);
}

/* A thread that both the listing and the kernel report is counted once, with its maker if that is
 * known from either. */
static void test_a_thread_that_is_told_twice_is_one(void **state)
{
    struct world *world = *state;
    char name[] = "worker";
    static const enum object_origin first[] = {ORIGIN_MAIN, ORIGIN_UNSEEN, ORIGIN_MAIN,
                                               ORIGIN_UNSEEN};
    static const enum object_origin then[] = {ORIGIN_MAIN, ORIGIN_UNSEEN, ORIGIN_SEEN,
                                              ORIGIN_LATER};
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(take_thread(world, OBJECT_THERE, first[i], 100 + i, name), 0);
        assert_int_equal(take_thread(world, OBJECT_MADE, then[i], 100 + i, NULL), 0);
        const struct objects *objects = &world->results.objects;
        const struct object_maker *found = objects_find(objects, 0, OBJECT_THREAD, 100 + i);
        assert_non_null(found);
        assert_int_equal(found->origin, then[i]);
        assert_int_equal(found->tid, 100 + i);
        assert_int_equal(found->maker, i < 2 ? 0 : MAKER);
        assert_string_equal(strings_get(&world->results.strings, found->name), name);
        uint64_t made = 0;
        for (size_t row = 0; row < objects->maker_count; row++)
            made += objects->makers[row].made;
        assert_int_equal(made, i + 1);
    }
}

/* The process executes another program: its memory is gone. */
static void test_those_of_a_program_are_forgotten(void **state)
{
    struct world *world = *state;
    tell(world, OBJECT_MADE, 0, 5, 64);
    tell(world, OBJECT_MADE, 1, 5, 64);
    tell(world, OBJECT_FORGOTTEN, 0, 0, 0);
    assert_row(world, 0, 1, 1);
    assert_row(world, 1, 1, 0);
    tell(world, OBJECT_MADE, 0, 5, 64);
    assert_row(world, 0, 2, 1);
}

/* The process has ended: these objects were never freed, and need no memory except their row. */
static void test_those_that_a_process_left_stay(void **state)
{
    struct world *world = *state;
    for (uint64_t key = 1; key <= 1000; key++)
        tell(world, OBJECT_MADE, 0, key, 64);
    tell(world, OBJECT_MADE, 1, 1, 64);
    tell(world, OBJECT_LEFT, 0, 0, 0);
    assert_row(world, 0, 1000, 0);
    assert_int_equal(world->results.objects.live_count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(they_come_and_go),
        TEST(a_thread_that_is_told_twice_is_one),
        TEST(those_of_a_program_are_forgotten),
        TEST(those_that_a_process_left_stay),
    };
    return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
