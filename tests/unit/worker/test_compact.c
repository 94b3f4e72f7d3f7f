/* What stays of the results when the rest is forgotten, and whether all that refers to it still
 * does. */
#include "owners_world.h"
#include "base/array.h"
#include "worker/compact.h"

/* A sample with a stack of its own. Its serial is its number. */
static uint32_t add(struct world *world)
{
    uint64_t address = 0x1000 + world->results.stacks.samples_added;
    struct stack stack = {.addresses = &address, .depth = 1};
    const struct sample_labels labels = {.syscall_number = -1};
    uint32_t sample;
    assert_int_equal(stack_table_add(&world->results.stacks, 0, &stack, &labels, 1, 1000, &sample),
                     0);
    return sample;
}

static void add_many(struct world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(add(world), i);
}

static void assert_is(const struct world *world, uint32_t sample, uint64_t serial)
{
    const struct stack_table *table = &world->results.stacks;
    assert_true(sample < table->sample_count);
    assert_int_equal(table->samples[sample].serial, serial);
    const struct counted_stack *stack = &table->stacks[table->samples[sample].stack];
    assert_int_equal(table->addresses[stack->first_address], 0x1000 + serial);
}

static void compact_until_now(struct world *world)
{
    uint32_t epoch = world->results.stacks.epoch++;
    assert_int_equal(compact(&world->results, &world->threads, &world->owners, epoch), 0);
}

static void test_what_was_counted_since_stays(void **state)
{
    struct world *world = *state;
    struct stack_table *table = &world->results.stacks;
    add_many(world, 6);
    table->epoch = 1;
    stack_table_count(table, 2, 1, 1, 1);
    table->epoch = 2;
    stack_table_count_waited(table, 5, 1);
    assert_int_equal(compact(&world->results, &world->threads, &world->owners, 0), 0);
    assert_int_equal(table->sample_count, 2);
    assert_int_equal(table->stack_count, 2);
    assert_is(world, 0, 2);
    assert_is(world, 1, 5);
    assert_int_equal(compact(&world->results, &world->threads, &world->owners, 1), 0);
    assert_int_equal(table->sample_count, 1);
    assert_is(world, 0, 5);
}

static struct thread_account *account(struct world *world, uint32_t number)
{
    struct counted_thread *thread = counted_threads_get(&world->threads, number, (pid_t)number + 1);
    assert_non_null(thread);
    return &thread->account;
}

/* Each of these refers to a sample of its own; the samples between them go. */
static void test_what_threads_refer_to_stays(void **state)
{
    struct world *world = *state;
    add_many(world, 40);
    struct thread_account *first = account(world, 0);
    first->last_sample = 1;
    first->unowned_sample = 3;
    first->awake_sample = 5;
    first->wait.sample = 7;
    first->wait.chain_sample = 9;
    for (uint32_t i = 0; i < ACCOUNT_COUNT; i++) {
        first->ledger.last_sample[i] = 11 + 2 * i;
        assert_int_equal(window_add(&first->ledger.windows[i], 17 + 2 * i, 1, 1), 0);
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(window_add(&first->ledger.windows[0], 23 + 2 * i, 1, 1), 0);
    struct thread_account *second = account(world, 1);
    second->last_sample = 29;
    compact_until_now(world);

    /* And the first one, which is what is noted where nothing is. */
    assert_int_equal(world->results.stacks.sample_count, 16);
    first = account(world, 0);
    assert_is(world, first->last_sample, 1);
    assert_is(world, first->unowned_sample, 3);
    assert_is(world, first->awake_sample, 5);
    assert_is(world, first->wait.sample, 7);
    assert_is(world, first->wait.chain_sample, 9);
    for (uint32_t i = 0; i < ACCOUNT_COUNT; i++) {
        assert_is(world, first->ledger.last_sample[i], 11 + 2 * i);
        assert_is(world, window_rows(&first->ledger.windows[i])[0].sample, 17 + 2 * i);
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_is(world, window_rows(&first->ledger.windows[0])[1 + i].sample, 23 + 2 * i);
    assert_is(world, account(world, 1)->last_sample, 29);
}

static void test_what_elapsed_time_and_timelines_refer_to_stays(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    struct timeline_cursor cursor = {0};
    const uint64_t booked_ns[] = {0, 0, 100};
    const struct elapsed_wait wait = {
        .sample = 3, .first_tick = 1, .last_tick = ELAPSED_OPEN, .is_blocked = true};
    uint64_t number;
    add_many(world, 10);
    assert_int_equal(array_reserve(&results->elapsed, &results->elapsed_capacity, 1), 0);
    results->elapsed[0] = (struct elapsed){0};
    results->elapsed_count = 1;
    assert_int_equal(elapsed_add_wait(&results->elapsed[0], &wait, &number), 0);
    timeline_want(&results->timeline, 10, 100, true);
    timeline_book(&results->timeline, &cursor, 7, 1000, booked_ns);
    timeline_give(&results->timeline, &cursor, 0, ACCOUNT_ASLEEP, 8);
    compact_until_now(world);
    assert_int_equal(results->stacks.sample_count, 2);
    assert_is(world, results->elapsed[0].waits[0].sample, 3);
    assert_is(world, results->timeline.runs[0].sample, 8);
}

/* A wait stays with its sample, its chain and the stacks of its owners; so does a deadlock. */
static void test_waits_and_deadlocks(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    struct stack_table *table = &results->stacks;
    uint32_t gone, end, chain, dead, sample;
    add_many(world, 10);
    struct counted_wait wait = {.key = 1, .owner_stack = 1};
    assert_int_equal(waits_add(&results->waits, &wait, &gone), 0);
    wait = (struct counted_wait){.key = 2, .owner_stack = 3};
    assert_int_equal(waits_add(&results->waits, &wait, &end), 0);
    wait = (struct counted_wait){.key = 3, .owner_stack = 5, .owner_wait_plus_1 = end};
    assert_int_equal(waits_add(&results->waits, &wait, &chain), 0);
    wait = (struct counted_wait){.key = 4, .owner_stack = WAIT_NO_STACK};
    assert_int_equal(waits_add(&results->waits, &wait, &dead), 0);
    struct deadlock_thread row = {.stack = 7, .wait_plus_1 = dead};
    assert_int_equal(deadlocks_add(&results->deadlocks, &row, 1), 0);
    assert_int_equal(stack_table_in_wait(table, 6, gone, &sample), 0);
    assert_int_equal(stack_table_in_wait(table, 9, chain, &sample), 0);
    table->epoch++;
    stack_table_count(table, sample, 1, 1, 1);
    assert_int_equal(compact(results, &world->threads, &world->owners, 0), 0);

    assert_int_equal(table->sample_count, 1);
    assert_int_equal(results->waits.count, 3);
    const struct counted_wait *waits = results->waits.rows;
    const struct counted_wait *of_sample = &waits[table->samples[0].labels.wait_plus_1 - 1];
    assert_int_equal(of_sample->key, 3);
    assert_int_equal(waits[of_sample->owner_wait_plus_1 - 1].key, 2);
    assert_int_equal(waits[results->deadlocks.rows[0].wait_plus_1 - 1].key, 4);
    /* Stacks 3 and 5 of owners, 7 of the deadlock, 9 of the sample. */
    assert_int_equal(table->stack_count, 4);
    const uint32_t stacks[] = {waits[of_sample->owner_wait_plus_1 - 1].owner_stack,
                               of_sample->owner_stack, results->deadlocks.rows[0].stack,
                               table->samples[0].stack};
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(table->addresses[table->stacks[stacks[i]].first_address], 0x1003 + 2 * i);
}

static uint32_t label_set(struct world *world, const char *value)
{
    const struct label_text label = {"route", value};
    uint32_t set_plus_1;
    bool is_limited;
    assert_int_equal(
        label_sets_add(&world->results.label_sets, &label, 1, &set_plus_1, &is_limited), 0);
    return set_plus_1;
}

static uint32_t add_labelled(struct world *world, uint32_t set_plus_1)
{
    uint64_t address = 0x2000;
    const struct stack stack = {.addresses = &address, .depth = 1};
    const struct sample_labels labels = {.syscall_number = -1, .label_set_plus_1 = set_plus_1};
    uint32_t sample;
    assert_int_equal(stack_table_add(&world->results.stacks, 0, &stack, &labels, 1, 1000, &sample),
                     0);
    return sample;
}

static void set_samples(struct thread_account *of_thread, uint32_t sample)
{
    of_thread->last_sample = of_thread->awake_sample = of_thread->unowned_sample = sample;
    of_thread->wait.sample = of_thread->wait.chain_sample = sample;
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++)
        of_thread->ledger.last_sample[i] = sample;
}

static void test_label_sets_stay_with_their_samples(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    add_labelled(world, label_set(world, "/gone"));
    uint32_t stays = add_labelled(world, label_set(world, "/stays"));
    account(world, 0);
    struct counted_thread *thread = &world->threads.items[0];
    thread->kept.labels.label_set_plus_1 = label_set(world, "/kept");
    set_samples(&thread->account, stays);
    compact_until_now(world);
    assert_int_equal(results->label_sets.set_count, 2);
    assert_int_equal(results->stacks.sample_count, 1);
    const struct sample_labels *labels = &results->stacks.samples[0].labels;
    const struct label_sets *sets = &results->label_sets;
    assert_string_equal(label_sets_value(sets, labels->label_set_plus_1, "route"), "/stays");
    assert_string_equal(label_sets_value(sets, thread->kept.labels.label_set_plus_1, "route"),
                        "/kept");
    /* A sample with these labels is the same one. */
    assert_int_equal(add_labelled(world, label_set(world, "/stays")), 0);
}

/* An address space of a program that has ended, with one mapping. */
static uint32_t add_space(struct world *world)
{
    struct spaces *spaces = &world->results.spaces;
    struct space *space = calloc(1, sizeof *space);
    assert_non_null(space);
    assert_int_equal(array_reserve(&spaces->items, &spaces->capacity, spaces->count + 1), 0);
    assert_int_equal(array_reserve(&space->mappings, &space->mapping_capacity, 1), 0);
    space->mappings[0] = (struct mapping){.end = 100, .path = strdup(""), .is_sampled = true};
    space->mapping_count = 1;
    space->is_retired = true;
    space->id = (uint32_t)spaces->count;
    spaces->items[spaces->count++] = space;
    return space->id;
}

/* Stacks, locks and stacks that may be counted later refer to mappings. */
static void test_mappings_stay_with_what_is_in_them(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    const uint64_t address = 1;
    const struct stack stack = {.addresses = (uint64_t *)&address, .depth = 1};
    const struct sample_labels labels = {.syscall_number = -1};
    const struct counted_wait wait = {.key = 4, .space = 2, .owner_stack = WAIT_NO_STACK};
    uint32_t samples[3], waiting;
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(add_space(world), i);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(
            stack_table_add(&results->stacks, 3 + i, &stack, &labels, 1, 1, &samples[i]), 0);
    assert_int_equal(waits_add(&results->waits, &wait, &waiting), 0);
    assert_int_equal(stack_table_in_wait(&results->stacks, samples[1], waiting, &samples[2]), 0);
    account(world, 0);
    struct counted_thread *thread = &world->threads.items[0];
    thread->kept = (struct kept_stack){.is_there = true, .space = 1};
    results->stacks.epoch++;
    stack_table_count(&results->stacks, samples[2], 1, 1, 1);
    set_samples(&thread->account, samples[2]);
    assert_int_equal(compact(results, &world->threads, &world->owners, 0), 0);
    assert_int_equal(results->stacks.sample_count, 1);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(results->spaces.items[i]->mapping_count, i == 1 || i == 2 || i == 4);
}

static void test_what_is_known_of_stacks_moves_with_them(void **state)
{
    struct world *world = *state;
    struct lock_sites *sites = &world->owners.sites;
    add_many(world, 5);
    assert_int_equal(array_reserve(&sites->items, &sites->capacity, 4), 0);
    for (uint32_t i = 0; i < 4; i++)
        sites->items[i] = (struct lock_site){.kind = RESOURCE_NOT_KNOWN + i};
    sites->count = 4;
    world->results.stacks.epoch++;
    stack_table_count(&world->results.stacks, 3, 1, 1, 1);
    assert_int_equal(compact(&world->results, &world->threads, &world->owners, 0), 0);
    assert_int_equal(sites->count, 1);
    assert_int_equal(sites->items[0].kind, RESOURCE_NOT_KNOWN + 3);
}

/* Objects are as old as their program: a stack that made some stays, however long ago that was. */
static void test_what_made_objects_stays(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    const uint64_t address = 0x1003;
    add_many(world, 6);
    const struct object_maker maker = {
        .process = 1, .bytes = 64, .stack = results->stacks.samples[3].stack};
    assert_int_equal(objects_made(&results->objects, &maker, 5, 1), 0);
    compact_until_now(world);
    compact_until_now(world);
    assert_int_equal(results->stacks.sample_count, 0);
    assert_int_equal(results->stacks.stack_count, 1);
    const struct counted_maker *row = &results->objects.makers[0];
    const struct counted_stack *stack = &results->stacks.stacks[row->maker.stack];
    assert_int_equal(stack->depth, 1);
    assert_int_equal(results->stacks.addresses[stack->first_address], address);
    objects_gone(&results->objects, 1, 0, 5);
    assert_int_equal(row->gone, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_counted_since_stays),
        TEST(test_what_threads_refer_to_stays),
        TEST(test_what_elapsed_time_and_timelines_refer_to_stays),
        TEST(test_waits_and_deadlocks),
        TEST(test_label_sets_stay_with_their_samples),
        TEST(test_mappings_stay_with_what_is_in_them),
        TEST(test_what_is_known_of_stacks_moves_with_them),
        TEST(test_what_made_objects_stays),
    };
    return cmocka_run_group_tests_name("compact", tests, NULL, NULL);
}
