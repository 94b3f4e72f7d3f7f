/* What the worker gives up when its data does not fit in memory. The test provides the checkpoints.
 */
#include "unit.h"
#include "base/array.h"
#include "worker/worker.h"

#define MEMORY ((size_t)1 << 20)
#define STEP ((size_t)100 << 10)

struct world {
    struct worker_options options;
    struct channel *channel;
    struct results results;
    struct worker *worker;
    size_t checkpoint_bytes;
    unsigned times_given_up;
};

static bool take_checkpoint(void *context, const struct results *results,
                            const struct sampling_state *state,
                            struct worker_checkpoints *ret_checkpoints)
{
    struct world *world = context;
    (void)results;
    (void)state;
    *ret_checkpoints =
        (struct worker_checkpoints){.are_last = true, .bytes = world->checkpoint_bytes};
    return !world->options.keeps_stacks;
}

static bool give_up(void *context, struct worker_checkpoints *ret_checkpoints)
{
    struct world *world = context;
    if (world->checkpoint_bytes < 2 * STEP)
        return false;
    world->times_given_up++;
    ret_checkpoints->bytes = world->checkpoint_bytes -= STEP;
    return true;
}

static void order(void *context)
{
    (void)context;
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    if (!world)
        return -1;
    world->options = (struct worker_options){
        .period_ns = 10000000,
        .max_depth = 10,
        .bytes_max = MEMORY,
        .checkpoint = take_checkpoint,
        .crowded = give_up,
        .order_checkpoint = order,
        .context = world,
    };
    return channel_new(&world->channel) || results_init(&world->results);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    worker_free(world->worker);
    channel_free(world->channel);
    results_free(&world->results);
    free(world);
    return 0;
}

/* Returns how often checkpoints were given up, with checkpoints of this size. */
static unsigned note_checkpoint(struct world *world, size_t checkpoint_bytes)
{
    const struct message end = {.kind = MESSAGE_END};
    struct message message = {.kind = MESSAGE_MOMENT};
    if (!world->worker)
        assert_int_equal(
            worker_new(&world->options, world->channel, &world->results, &world->worker), 0);
    message.state = calloc(1, sizeof *message.state);
    assert_non_null(message.state);
    world->checkpoint_bytes = checkpoint_bytes;
    world->times_given_up = 0;
    assert_int_equal(channel_send(world->channel, &message), 0);
    assert_int_equal(channel_send(world->channel, &end), 0);
    assert_int_equal(worker_run(world->worker), 0);
    return world->times_given_up;
}

/* Makes the times of processes, which can't be dropped, take about that many bytes. */
static void count(struct world *world, size_t bytes)
{
    struct results *results = &world->results;
    size_t rows = bytes / sizeof *results->elapsed;
    assert_int_equal(array_reserve(&results->elapsed, &results->elapsed_capacity, rows), 0);
    memset(results->elapsed, 0, rows * sizeof *results->elapsed);
    results->elapsed_count = rows;
}

static void test_what_fits_is_kept(void **state)
{
    struct world *world = *state;
    assert_int_equal(note_checkpoint(world, 9 * STEP), 0);
    assert_int_equal(note_checkpoint(world, 11 * STEP), 1);
}

/* Modules of 2 MiB, which can't be dropped, take at most half of the memory. */
static void test_programs_take_half_at_most(void **state)
{
    struct world *world = *state;
    struct modules *modules = &world->results.modules;
    assert_int_equal(
        array_reserve(&modules->items, &modules->capacity, 2 * MEMORY / sizeof *modules->items), 0);
    assert_int_equal(note_checkpoint(world, 4 * STEP), 0);
    assert_in_range(note_checkpoint(world, 9 * STEP), 4, 5);
    assert_in_range(world->checkpoint_bytes, MEMORY / 2 - 2 * STEP, MEMORY / 2);
}

/* Stacks since the start may take half of the memory. If giving up checkpoints does not reduce
 * them, they are full, and later checkpoints are kept. */
static void test_stacks_are_full_beyond_half(void **state)
{
    struct world *world = *state;
    const struct stack_table *stacks = &world->results.stacks;
    world->options.keeps_stacks = true;
    count(world, MEMORY / 2 - STEP);
    assert_int_equal(note_checkpoint(world, 4 * STEP), 0);
    assert_false(stacks->is_full);
    count(world, MEMORY / 2 + STEP / 2);
    assert_int_equal(note_checkpoint(world, 4 * STEP), 3);
    assert_true(stacks->is_full);
    assert_int_equal(note_checkpoint(world, 4 * STEP), 0);
    assert_true(stacks->is_full);
    assert_in_range(note_checkpoint(world, 6 * STEP), 1, 2); /* no more than fit at all */
    count(world, MEMORY / 2 + 4 * STEP); /* much of it may be of ended processes */
    assert_int_equal(note_checkpoint(world, 4 * STEP), 3);
    count(world, MEMORY / 2 - STEP);
    assert_int_equal(note_checkpoint(world, 4 * STEP), 0);
    assert_false(stacks->is_full);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_fits_is_kept),
        TEST(test_programs_take_half_at_most),
        TEST(test_stacks_are_full_beyond_half),
    };
    return cmocka_run_group_tests_name("crowded", tests, NULL, NULL);
}
