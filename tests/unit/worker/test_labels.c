/* Where the program's threads keep their labels. The test replaces the search for that. */
#include "unit.h"
#include "label/tls_variable.h"
#include "worker/labels.h"

#include <errno.h>

int __wrap_tls_variable_find(struct queries *queries, struct space *space, pid_t tid,
                             const char *name, struct context_place *ret_place);

static const struct context_place library = {CONTEXT_DYNAMIC, 16, 2};

/* The result of the next search. */
static int result;

int __wrap_tls_variable_find(struct queries *queries, struct space *space, pid_t tid,
                             const char *name, struct context_place *ret_place)
{
    (void)queries, (void)space, (void)tid, (void)name;
    if (!result)
        *ret_place = library;
    return result;
}

struct world {
    struct program_labels labels;
    struct space space;
    struct program_maps maps;
    struct program program;
    struct channel *channel;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    if (!world)
        return -1;
    world->space.has_context = true;
    world->maps.space = &world->space;
    world->labels.context.is_known_schema = true;
    world->program = (struct program){.number = 3, .proc_fd = -1, .maps_fd = -1, .mem_fd = -1};
    return channel_new(&world->channel);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    program_labels_free(&world->labels);
    channel_free(world->channel);
    free(world);
    return 0;
}

/* Searches again, as after some time, and returns whether the sampling thread gets a request. */
static bool search(struct world *world, int err, struct context_place *ret_told)
{
    const struct observation observation = {.tid = getpid(), .program = &world->program};
    const struct means means = {.channel = world->channel};
    struct request request;
    result = err;
    world->labels.searching = (struct throttle){0};
    assert_int_equal(program_labels_update(&world->labels, &means, &world->maps, &observation), 0);
    if (!channel_next_request(world->channel, &request))
        return false;
    assert_int_equal(request.kind, REQUEST_CONTEXT);
    assert_int_equal(request.program, 3);
    *ret_told = request.context;
    return true;
}

/* If a search fails, labels are still read from the known place. */
static void test_a_place_is_kept_if_a_later_search_fails(void **state)
{
    struct world *world = *state;
    struct context_place told;
    assert_false(search(world, -EAGAIN, &told));
    assert_true(search(world, 0, &told));
    assert_int_equal(told.kind, CONTEXT_DYNAMIC);
    assert_int_equal(told.module, 2);
    assert_false(search(world, -EAGAIN, &told));
    assert_int_equal(world->labels.place.kind, CONTEXT_DYNAMIC);
    assert_false(search(world, 0, &told));
}

static void test_a_place_of_an_unloaded_library_is_given_up(void **state)
{
    struct world *world = *state;
    struct context_place told;
    assert_true(search(world, 0, &told));
    assert_true(search(world, -ENOENT, &told));
    assert_int_equal(told.kind, CONTEXT_NOWHERE);
}

/* If there are more mappings, a known place is searched for again, until a search succeeds. */
static void test_new_mappings_are_searched_until_that_works(void **state)
{
    struct world *world = *state;
    struct context_place told;
    assert_true(search(world, 0, &told));
    world->labels.place = world->labels.told = (struct context_place){CONTEXT_STATIC, -8, 0};
    assert_false(search(world, 0, &told));
    world->space.mapping_count = 1;
    assert_false(search(world, -EAGAIN, &told));
    assert_true(search(world, 0, &told));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_place_is_kept_if_a_later_search_fails),
        TEST(test_a_place_of_an_unloaded_library_is_given_up),
        TEST(test_new_mappings_are_searched_until_that_works),
    };
    return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}
