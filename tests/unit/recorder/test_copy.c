/* Copies of a running recording, and of what was added after a checkpoint. */
#include "unit.h"
#include "recorder/copy.h"
#include "recorder/checkpoints.h"

struct world {
    struct results results;
    struct sampling_state state;
    struct copy copy;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    return world ? strings_init(&world->results.strings) : -1;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    results_free(&world->copy.results);
    stack_table_free(&world->results.stacks);
    label_sets_free(&world->results.label_sets);
    runtime_frames_free(&world->results.runtime_frames);
    strings_free(&world->results.strings);
    free(world);
    return 0;
}

static uint32_t name(struct world *world, const char *text)
{
    uint32_t number;
    assert_int_equal(strings_intern(&world->results.strings, text, &number), 0);
    return number;
}

/* Counts a stack of these two addresses for a thread of the process. */
static uint32_t count(struct world *world, uint64_t leaf, uint64_t caller, const char *thread,
                      uint32_t process, uint64_t ticks)
{
    uint64_t addresses[] = {leaf, caller};
    struct stack stack = {.addresses = addresses, .depth = 2};
    struct sample_labels labels = {
        .thread_name = name(world, thread), .syscall_number = -1, .process = process};
    uint32_t sample;
    assert_int_equal(
        stack_table_add(&world->results.stacks, 0, &stack, &labels, ticks, ticks * 1000, &sample),
        0);
    return sample;
}

static uint32_t add_process(struct world *world, pid_t pid, const char *text)
{
    uint32_t process;
    assert_int_equal(
        stack_table_add_process(&world->results.stacks, pid, name(world, text), &process), 0);
    return process;
}

static const struct results *update(struct world *world)
{
    assert_int_equal(copy_update(&world->copy, &world->results, &world->state), 0);
    return &world->copy.results;
}

static void test_a_copy_is_of_its_checkpoint(void **state)
{
    struct world *world = *state;
    uint32_t process = add_process(world, 7, "app");
    uint32_t sample = count(world, 0x1000, 0x2000, "worker", process, 3);
    world->state.counts.ticks_taken = 3;
    world->state.now_ns = 77;
    world->results.counts.samples = 3;
    const struct results *copy = update(world);
    stack_table_count(&world->results.stacks, sample, 5, 5000, 0);
    count(world, 0x3000, 0x2000, "other", process, 1);
    world->state.counts.ticks_taken = 9;
    world->results.counts.samples = 9;
    assert_int_equal(world->copy.counts.ticks_taken, 3);
    assert_int_equal(copy->counts.samples, 3);
    assert_int_equal(copy->stacks.stack_count, 1);
    assert_int_equal(copy->stacks.sample_count, 1);
    assert_int_equal(copy->stacks.samples[0].count, 3);
    assert_int_equal(copy->stacks.samples[0].time_ns, 3000);
    assert_string_equal(strings_get(&copy->strings, copy->stacks.samples[0].labels.thread_name),
                        "worker");
    assert_int_equal(world->copy.until_ns, 77);
}

static void test_an_update_takes_over_what_changed(void **state)
{
    struct world *world = *state;
    uint32_t process = add_process(world, 7, "app");
    uint32_t sample = count(world, 0x1000, 0x2000, "worker", process, 3);
    update(world);
    stack_table_count(&world->results.stacks, sample, 5, 5000, 0);
    count(world, 0x3000, 0x2000, "other", add_process(world, 8, "child"), 1);
    world->results.stacks.processes[process].name = name(world, "renamed");
    const struct results *copy = update(world);
    assert_int_equal(copy->stacks.samples[0].count, 8);
    assert_int_equal(copy->stacks.samples[0].time_ns, 8000);
    assert_int_equal(copy->stacks.sample_count, 2);
    assert_int_equal(copy->stacks.stack_count, 2);
    const struct counted_stack *stack = &copy->stacks.stacks[copy->stacks.samples[1].stack];
    assert_int_equal(stack->depth, 2);
    assert_int_equal(copy->stacks.addresses[stack->first_address], 0x3000);
    assert_int_equal(copy->stacks.addresses[stack->first_address + 1], 0x2000);
    assert_int_equal(copy->stacks.process_count, 2);
    assert_int_equal(copy->stacks.processes[1].pid, 8);
    assert_string_equal(strings_get(&copy->strings, copy->stacks.processes[0].name), "renamed");
    assert_string_equal(strings_get(&copy->strings, copy->stacks.processes[1].name), "child");
}

/* Unchanged data is not copied again: a mark in the copy is still there. */
static void test_an_update_adds_only_what_is_new(void **state)
{
    struct world *world = *state;
    uint32_t process = add_process(world, 7, "app");
    count(world, 0x1000, 0x2000, "worker", process, 3);
    update(world);
    world->copy.results.stacks.addresses[0] = 0xbeef;
    world->copy.results.stacks.stacks[0].cut = STACK_CUT_UNREADABLE;
    const char *text = strings_get(&world->copy.results.strings, 1);
    count(world, 0x3000, 0x2000, "other", process, 1);
    const struct results *copy = update(world);
    assert_int_equal(copy->stacks.addresses[0], 0xbeef);
    assert_int_equal(copy->stacks.stacks[0].cut, STACK_CUT_UNREADABLE);
    assert_ptr_equal(strings_get(&copy->strings, 1), text);
    assert_int_equal(copy->stacks.addresses[2], 0x3000);
    assert_int_equal(copy->strings.count, world->results.strings.count);
}

/* Two processes; the second comes after the checkpoint. */
static void test_what_came_after_a_checkpoint(void **state)
{
    struct world *world = *state;
    struct checkpoint *checkpoint;
    struct results *results = &world->results;
    struct elapsed processes[2] = {{.begin_ns = 5, .idle_ticks = 10, .pending = 2},
                                   {.begin_ns = 90}};
    uint32_t process = add_process(world, 7, "app");
    uint32_t stays = count(world, 0x1000, 0x2000, "worker", process, 3);
    uint32_t grows = count(world, 0x3000, 0x2000, "worker", process, 4);
    results->elapsed = processes;
    results->elapsed_count = 1;
    results->parallelism.ticks[2] = 1.5;
    results->stacks.samples[grows].waited_ticks = 2;
    results->stacks.samples[stays].sleeps = 5;
    results->counts.spans_kept = 2;
    results->counts.spans_dropped = 30;
    results->counts.spans_dropped_ns = 500;
    world->state.counts.ticks_taken = 8;
    world->state.counts.threads_seen = 2;
    world->state.now_ns = 77;
    update(world);
    assert_int_equal(checkpoint_take(&world->copy.results, &world->state, 9, &checkpoint), 0);
    assert_int_equal(checkpoint_at_ns(checkpoint), 77);
    assert_int_equal(checkpoint_ticks_planned(checkpoint), 9);

    stack_table_count(&results->stacks, grows, 5, 5000, 40);
    stack_table_take_sleeps(&results->stacks, stays, 2);
    results->stacks.samples[grows].waited_ticks = 2.5;
    uint32_t gone = count(world, 0x7000, 0x2000, "gone", 0, 3);
    uint32_t joined = gone + 1;
    const struct counted_sample row = results->stacks.samples[gone];
    assert_int_equal(stack_table_join_ended(&results->stacks, gone, row.stack, &row.labels), 0);
    assert_true(counted_sample_is_empty(&results->stacks.samples[gone]));
    assert_int_equal(results->stacks.samples[joined].count, 3);
    uint32_t later = count(world, 0x5000, 0x2000, "other", add_process(world, 8, "child"), 1);
    processes[0].idle_ticks = 13;
    processes[0].pending = 0;
    results->elapsed_count = 2;
    results->parallelism.ticks[2] = 4;
    results->counts.samples = 13;
    results->counts.spans_kept = 3;
    results->counts.spans_dropped = 34;
    results->counts.spans_dropped_ns = 700;
    world->state.counts.ticks_taken = 20;
    world->state.counts.threads_seen = 3;
    world->state.now_ns = 100;
    const struct results *copy = update(world);
    checkpoint_subtract(checkpoint, &world->copy.results, &world->copy.counts);
    const struct counted_sample *samples = copy->stacks.samples;
    assert_int_equal(samples[stays].count, 0);
    assert_int_equal(samples[stays].time_ns, 0);
    assert_int_equal(samples[stays].sleeps, 0);
    assert_int_equal(samples[grows].count, 5);
    assert_int_equal(samples[grows].time_ns, 5000);
    assert_int_equal(samples[grows].part_ns, 40);
    assert_true(samples[grows].waited_ticks == 0.5);
    assert_int_equal(samples[later].count, 1);
    assert_true(counted_sample_is_empty(&samples[joined]));
    assert_int_equal(copy->elapsed[0].begin_ns, 77);
    assert_int_equal(copy->elapsed[0].idle_ticks, 1);
    assert_int_equal(copy->elapsed[1].begin_ns, 90);
    assert_true(copy->parallelism.ticks[2] == 2.5);
    assert_int_equal(copy->counts.spans_kept, 1);
    assert_int_equal(copy->counts.spans_dropped, 4);
    assert_int_equal(copy->counts.spans_dropped_ns, 200);
    assert_int_equal(world->copy.counts.ticks_taken, 12);
    assert_int_equal(world->copy.counts.threads_seen, 3);

    /* The next copy is complete again. */
    copy = update(world);
    assert_int_equal(copy->stacks.samples[grows].count, 9);
    assert_int_equal(copy->elapsed[0].begin_ns, 5);
    assert_int_equal(world->copy.counts.ticks_taken, 20);
    checkpoint_free(checkpoint);
}

/* Numbers of label sets and of their texts have since been reused. */
static void test_label_sets_that_are_left(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    const struct label_text labels[] = {{"route", "/a"}, {"route", "/b"}};
    struct renumber none = {0}, rows;
    struct label_sets kept;
    uint32_t set;
    bool is_limited;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(label_sets_add(&results->label_sets, &labels[i], 1, &set, &is_limited), 0);
    assert_string_equal(label_sets_value(&update(world)->label_sets, 2, "route"), "/b");
    assert_int_equal(renumber_init(&rows, 2), 0);
    renumber_keep(&rows, 1);
    renumber_assign(&rows);
    stack_table_keep(&results->stacks, &none, &none, &none, &rows);
    assert_int_equal(label_sets_keep(&results->label_sets, &rows, &kept), 0);
    label_sets_free(&results->label_sets);
    results->label_sets = kept;
    const struct results *copy = update(world);
    assert_int_equal(copy->label_sets.set_count, 1);
    assert_string_equal(label_sets_value(&copy->label_sets, 1, "route"), "/b");
    renumber_free(&rows);
}

static uint64_t add_function(struct world *world, const char *text)
{
    struct runtime_frames *frames = &world->results.runtime_frames;
    struct runtime_frame frame = {0};
    uint64_t address;
    assert_int_equal(runtime_frames_text(frames, text, &frame.name), 0);
    assert_int_equal(runtime_frames_add(frames, &frame, &address), 0);
    return address;
}

static const char *function_of(const struct results *copy, uint64_t address)
{
    const struct runtime_frame *frame = runtime_frames_find(&copy->runtime_frames, address);
    return frame ? strings_get(&copy->runtime_frames.strings, frame->name) : NULL;
}

/* The address and the text's number of the first function have since been reused. */
static void test_functions_of_interpreters_that_are_left(void **state)
{
    struct world *world = *state;
    struct runtime_frames *frames = &world->results.runtime_frames;
    struct renumber rows, texts;
    uint64_t first = add_function(world, "parse"), second = add_function(world, "render");
    const struct results *copy = update(world);
    assert_string_equal(function_of(copy, first), "parse");
    assert_string_equal(function_of(copy, second), "render");
    assert_int_equal(renumber_init(&rows, frames->count), 0);
    assert_int_equal(renumber_init(&texts, frames->strings.count), 0);
    renumber_keep(&rows, runtime_frames_number(frames, second));
    runtime_frames_keep_texts(frames, &rows, &texts);
    renumber_assign(&rows);
    renumber_assign(&texts);
    runtime_frames_keep(frames, &rows, &texts);
    copy = update(world);
    assert_string_equal(function_of(copy, first), "render");
    assert_null(function_of(copy, second));
    assert_int_equal(add_function(world, "send"), second);
    assert_string_equal(function_of(update(world), second), "send");
    renumber_free(&rows);
    renumber_free(&texts);
}

/* A sample that was forgotten and found again is not the one that the checkpoint had. */
static void test_what_was_forgotten_since(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    struct renumber rows, none;
    struct checkpoint *checkpoint;
    uint32_t process = add_process(world, 7, "app");
    count(world, 0x1000, 0x2000, "worker", process, 3);
    count(world, 0x3000, 0x2000, "worker", process, 4);
    update(world);
    assert_int_equal(checkpoint_take(results, &world->state, 0, &checkpoint), 0);

    assert_int_equal(renumber_init(&rows, 2), 0);
    assert_int_equal(renumber_init(&none, 0), 0);
    renumber_keep(&rows, 1);
    renumber_assign(&rows);
    stack_table_keep(&results->stacks, &rows, &rows, &none, &none);
    uint32_t stays = count(world, 0x3000, 0x2000, "worker", process, 10);
    uint32_t again = count(world, 0x1000, 0x2000, "worker", process, 20);
    const struct results *copy = update(world);
    assert_int_equal(copy->stacks.sample_count, 2);
    assert_int_equal(copy->stacks.stack_count, 2);
    assert_int_equal(copy->stacks.address_count, 4);
    const struct counted_stack *stacks = copy->stacks.stacks;
    assert_int_equal(copy->stacks.addresses[stacks[0].first_address], 0x3000);
    assert_int_equal(copy->stacks.addresses[stacks[1].first_address], 0x1000);
    assert_int_equal(copy->stacks.samples[stays].count, 14);
    checkpoint_subtract(checkpoint, &world->copy.results, &world->copy.counts);
    assert_int_equal(copy->stacks.samples[stays].count, 10);
    assert_int_equal(copy->stacks.samples[again].count, 20);
    checkpoint_free(checkpoint);
    renumber_free(&rows);
    renumber_free(&none);
}

static void test_memory_of_what_was_forgotten_is_freed(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    struct renumber rows, none;
    uint32_t process = add_process(world, 7, "app");
    for (uint32_t i = 0; i < 5000; i++)
        count(world, 0x1000 + i, 0x2000, "worker", process, 1);
    const struct results *copy = update(world);
    assert_true(copy->stacks.sample_capacity >= 5000);
    assert_int_equal(renumber_init(&rows, 5000), 0);
    assert_int_equal(renumber_init(&none, 0), 0);
    renumber_keep(&rows, 4999);
    renumber_assign(&rows);
    stack_table_keep(&results->stacks, &rows, &rows, &none, &none);
    copy = update(world);
    assert_int_equal(copy->stacks.sample_count, 1);
    assert_int_equal(copy->stacks.addresses[copy->stacks.stacks[0].first_address], 0x1000 + 4999);
    assert_in_range(copy->stacks.sample_capacity, 1, 100);
    assert_in_range(copy->stacks.stack_capacity, 1, 100);
    assert_in_range(copy->stacks.address_capacity, 1, 100);
    renumber_free(&rows);
    renumber_free(&none);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_a_copy_is_of_its_checkpoint),
        IN_WORLD(test_an_update_takes_over_what_changed),
        IN_WORLD(test_an_update_adds_only_what_is_new),
        IN_WORLD(test_what_came_after_a_checkpoint),
        IN_WORLD(test_label_sets_that_are_left),
        IN_WORLD(test_functions_of_interpreters_that_are_left),
        IN_WORLD(test_what_was_forgotten_since),
        IN_WORLD(test_memory_of_what_was_forgotten_is_freed),
    };
    return cmocka_run_group_tests_name("copy", tests, NULL, NULL);
}
