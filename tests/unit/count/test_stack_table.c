#include "unit.h"
#include "count/stack_table.h"

static uint32_t add(struct stack_table *table, uint32_t space, enum stack_cut cut,
                    uint64_t *addresses, size_t depth, uint32_t name, uint32_t tid, uint64_t count)
{
    struct stack stack = {.addresses = addresses, .depth = depth, .cut = cut};
    struct sample_labels labels = {.thread_name = name, .tid = tid, .syscall_number = -1};
    uint32_t sample = UINT32_MAX;
    assert_int_equal(stack_table_add(table, space, &stack, &labels, count, count * 1000, &sample),
                     0);
    assert_true(sample < table->sample_count);
    return sample;
}

static uint64_t total(const struct stack_table *table)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < table->sample_count; i++)
        sum += table->samples[i].count;
    return sum;
}

static void test_equal_stacks_are_there_once(void **state)
{
    (void)state;
    struct stack_table table = {0};
    uint64_t first[] = {0x10, 0x20, 0x30}, second[] = {0x10, 0x20, 0x30};
    uint32_t sample = add(&table, 1, STACK_WHOLE, first, 3, 5, 0, 2);
    assert_int_equal(add(&table, 1, STACK_WHOLE, second, 3, 5, 0, 3), sample);
    assert_int_equal(table.stack_count, 1);
    assert_int_equal(table.address_count, 3);
    assert_int_equal(table.sample_count, 1);
    assert_int_equal(table.samples[0].count, 5);
    assert_int_equal(table.samples[0].time_ns, 5000);
    assert_int_equal(table.samples[0].labels.thread_name, 5);
    assert_int_equal(table.stacks[0].space, 1);
    assert_int_equal(table.stacks[0].cut, STACK_WHOLE);
    stack_table_free(&table);
}

static void test_addresses_are_copied_in_order(void **state)
{
    (void)state;
    struct stack_table table = {0};
    uint64_t addresses[] = {0x10, 0x20, 0x30};
    add(&table, 0, STACK_WHOLE, addresses, 3, 0, 0, 1);
    memset(addresses, 0xff, sizeof addresses);
    add(&table, 0, STACK_WHOLE, addresses, 1, 0, 0, 1);
    const struct counted_stack *stack = &table.stacks[0];
    assert_int_equal(stack->depth, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(table.addresses[stack->first_address + i], 0x10 * (i + 1));
    assert_int_equal(table.stacks[1].depth, 1);
    assert_true(table.addresses[table.stacks[1].first_address] == UINT64_MAX);
    stack_table_free(&table);
}

static void test_labels_make_samples_of_their_own(void **state)
{
    (void)state;
    struct stack_table table = {0};
    uint64_t addresses[] = {0x10, 0x20};
    uint32_t first = add(&table, 0, STACK_WHOLE, addresses, 2, 1, 100, 1);
    uint32_t other_name = add(&table, 0, STACK_WHOLE, addresses, 2, 2, 100, 1);
    uint32_t other_tid = add(&table, 0, STACK_WHOLE, addresses, 2, 1, 101, 1);
    assert_int_not_equal(first, other_name);
    assert_int_not_equal(first, other_tid);
    assert_int_not_equal(other_name, other_tid);
    assert_int_equal(table.stack_count, 1);
    assert_int_equal(table.sample_count, 3);
    assert_int_equal(table.samples[other_name].labels.thread_name, 2);
    assert_int_equal(table.samples[other_tid].labels.tid, 101);
    stack_table_free(&table);
}

static void test_each_label_makes_a_sample_of_its_own(void **state)
{
    (void)state;
    struct stack_table table = {0};
    uint64_t addresses[] = {0x10, 0x20};
    struct stack stack = {.addresses = addresses, .depth = 2, .cut = STACK_WHOLE};
    const struct sample_labels labels[] = {
        {1, 2, 0, THREAD_SLEEPING, 202, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {9, 2, 0, THREAD_SLEEPING, 202, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {1, 2, 3, THREAD_SLEEPING, 202, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {1, 9, 0, THREAD_SLEEPING, 202, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {1, 2, 0, THREAD_UNINTERRUPTIBLE, 202, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {1, 2, 0, THREAD_UNINTERRUPTIBLE, 202, 3, 0, 0, 0, 0, 0, 0, 0, 0},
        {1, 2, 0, THREAD_SLEEPING, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {1, 2, 0, THREAD_SLEEPING, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {1, 2, 0, THREAD_SLEEPING, 202, 0, 4, 0, 0, 0, 0, 0, 0, 0},
        {1, 2, 0, THREAD_SLEEPING, 202, 0, 0, 5, 0, 0, 0, 0, 0, 0},
        {1, 2, 0, THREAD_SLEEPING, 202, 0, 0, 0, 6, 0, 0, 0, 0, 0},
        {1, 2, 0, THREAD_SLEEPING, 202, 0, 0, 0, 0, 7, 0, 0, 0, 0},
        {1, 2, 0, THREAD_SLEEPING, 202, 0, 0, 0, 0, 0, 0, 0, 0, 8},
        {1, 2, 0, THREAD_SLEEPING, 202, 0, 0, 0, 0, 0, 1, 0, 0, 0},
        {1, 2, 0, THREAD_SLEEPING, 202, 0, 0, 0, 0, 0, 0, TASK_NONE, 0, 0},
        {1, 2, 0, THREAD_SLEEPING, 202, 0, 0, 0, 0, 0, 0, TASK_GOROUTINE, 9, 0},
    };
    enum { COUNT = sizeof labels / sizeof *labels };
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t sample;
            assert_int_equal(stack_table_add(&table, 0, &stack, &labels[i], 1, 10, &sample), 0);
            assert_int_equal(sample, i);
            assert_memory_equal(&table.samples[sample].labels, &labels[i], sizeof *labels);
            assert_int_equal(table.samples[sample].count, round + 1);
        }
    }
    assert_int_equal(table.stack_count, 1);
    assert_int_equal(table.sample_count, COUNT);
    stack_table_free(&table);
}

static void test_cut_space_depth_and_order_make_stacks_of_their_own(void **state)
{
    (void)state;
    struct stack_table table = {0};
    uint64_t addresses[] = {0x10, 0x20}, reversed[] = {0x20, 0x10};
    add(&table, 0, STACK_WHOLE, addresses, 2, 0, 0, 1);
    add(&table, 0, STACK_CUT_AT_MAX_DEPTH, addresses, 2, 0, 0, 1);
    add(&table, 0, STACK_CUT_UNREADABLE, addresses, 2, 0, 0, 1);
    add(&table, 1, STACK_WHOLE, addresses, 2, 0, 0, 1);
    add(&table, 0, STACK_WHOLE, addresses, 1, 0, 0, 1);
    add(&table, 0, STACK_WHOLE, reversed, 2, 0, 0, 1);
    assert_int_equal(table.stack_count, 6);
    assert_int_equal(table.sample_count, 6);
    add(&table, 0, STACK_CUT_UNREADABLE, addresses, 2, 0, 0, 1);
    assert_int_equal(table.stack_count, 6);
    stack_table_free(&table);
}

static void test_stacks_without_frames(void **state)
{
    (void)state;
    struct stack_table table = {0};
    uint32_t first = add(&table, UINT32_MAX, STACK_CUT_NOT_CAPTURED, NULL, 0, 1, 0, 1);
    assert_int_equal(add(&table, UINT32_MAX, STACK_CUT_NOT_CAPTURED, NULL, 0, 1, 0, 1), first);
    add(&table, UINT32_MAX, STACK_CUT_NO_UNWIND_INFO, NULL, 0, 1, 0, 1);
    assert_int_equal(table.stack_count, 2);
    assert_int_equal(table.samples[first].count, 2);
    stack_table_free(&table);
}

static void test_counting_on(void **state)
{
    (void)state;
    struct stack_table table = {0};
    uint64_t addresses[] = {0x10, 0x20};
    add(&table, 0, STACK_WHOLE, addresses, 1, 0, 0, 7);
    uint32_t sample = add(&table, 0, STACK_WHOLE, addresses, 2, 0, 0, 1);
    stack_table_count(&table, sample, 4, 40, 400);
    assert_int_equal(table.samples[sample].count, 5);
    assert_int_equal(table.samples[sample].time_ns, 1040);
    assert_int_equal(total(&table), 12);
    stack_table_free(&table);
}

static void test_sleeps(void **state)
{
    (void)state;
    struct stack_table table = {0};
    uint64_t addresses[] = {0x10};
    uint32_t sample = add(&table, 0, STACK_WHOLE, addresses, 1, 0, 0, 7);
    assert_int_equal(table.samples[sample].sleeps, 0);
    stack_table_count_sleeps(&table, sample, 5);
    stack_table_count_sleeps(&table, sample, 4);
    stack_table_take_sleeps(&table, sample, 2);
    assert_int_equal(table.samples[sample].sleeps, 7);
    stack_table_take_sleeps(&table, sample, 8);
    assert_int_equal(table.samples[sample].sleeps, 0);
    /* The count saturates. */
    stack_table_count_sleeps(&table, sample, UINT32_MAX);
    stack_table_count_sleeps(&table, sample, 5);
    assert_true(table.samples[sample].sleeps == UINT32_MAX + 5ull);
    stack_table_count_sleeps(&table, sample, UINT64_MAX);
    assert_true(table.samples[sample].sleeps == UINT64_MAX);
    stack_table_free(&table);
}

/* Every third row goes, with its stack. The others keep their counts, and are found again. */
static void test_rows_can_be_forgotten(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    struct stack_table table = {.epoch = 7};
    struct renumber stacks, samples, waits, label_sets;
    uint64_t addresses[COUNT + 5];
    size_t kept = 0;
    for (uint64_t i = 0; i < COUNT + 5; i++)
        addresses[i] = i;
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(add(&table, 1, STACK_WHOLE, &addresses[i], 1 + i % 5, i % 7, 0, i), i);
    table.samples[4].labels.wait_plus_1 = 3;
    table.samples[4].labels.label_set_plus_1 = 4;
    assert_int_equal(renumber_init(&stacks, COUNT), 0);
    assert_int_equal(renumber_init(&samples, COUNT), 0);
    assert_int_equal(renumber_init(&waits, 3), 0);
    assert_int_equal(renumber_init(&label_sets, 4), 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        if (i % 3) {
            renumber_keep(&stacks, i);
            renumber_keep(&samples, i);
        }
    }
    renumber_keep(&waits, 2);
    renumber_keep(&label_sets, 0);
    renumber_keep(&label_sets, 3);
    renumber_assign(&stacks);
    renumber_assign(&samples);
    renumber_assign(&waits);
    renumber_assign(&label_sets);
    size_t bytes = stack_table_bytes(&table);
    stack_table_keep(&table, &stacks, &samples, &waits, &label_sets);
    assert_true(stack_table_bytes(&table) < bytes);
    assert_int_equal(table.sample_count, COUNT / 3 * 2);
    assert_int_equal(table.stack_count, COUNT / 3 * 2);
    assert_int_equal(table.times_renumbered, 1);
    struct sample_labels *moved = &table.samples[renumber_of(&samples, 4)].labels;
    assert_int_equal(moved->wait_plus_1, 1);
    assert_int_equal(moved->label_set_plus_1, 2);
    moved->wait_plus_1 = moved->label_set_plus_1 = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        if (i % 3 == 0 || i == 4)
            continue;
        uint32_t sample = renumber_of(&samples, i);
        kept++;
        assert_int_equal(table.samples[sample].serial, i);
        assert_int_equal(table.samples[sample].count, i);
        assert_int_equal(table.samples[sample].epoch, 7);
        assert_int_equal(add(&table, 1, STACK_WHOLE, &addresses[i], 1 + i % 5, i % 7, 0, 0),
                         sample);
    }
    assert_int_equal(kept, COUNT / 3 * 2 - 1);
    /* A forgotten sample that is added again is a new one. */
    uint32_t again = add(&table, 1, STACK_WHOLE, &addresses[3], 4, 3, 0, 1);
    assert_int_equal(again, COUNT / 3 * 2);
    assert_int_equal(table.samples[again].count, 1);
    assert_int_equal(table.samples[again].serial, COUNT);
    renumber_free(&stacks);
    renumber_free(&samples);
    renumber_free(&waits);
    renumber_free(&label_sets);
    stack_table_free(&table);
}

/* Adds a sample that is set aside under this number. */
static uint32_t add_aside(struct stack_table *table, uint64_t address, uint32_t aside,
                          uint64_t count)
{
    const struct stack stack = {.addresses = &address, .depth = 1};
    const struct sample_labels labels = {.syscall_number = -1, .aside = aside};
    uint32_t sample;
    assert_int_equal(stack_table_add(table, 1, &stack, &labels, count, 10, &sample), 0);
    return sample;
}

/* Takes all samples set aside under this number; returns how many there are, and the sum of their
 * counts. */
static size_t take_all(struct stack_table *table, uint32_t aside, uint64_t *ret_count)
{
    size_t samples = 0;
    uint32_t sample;
    *ret_count = 0;
    while (stack_table_take_aside(table, aside, &sample)) {
        assert_int_equal(table->samples[sample].labels.aside, aside);
        *ret_count += table->samples[sample].count;
        samples++;
    }
    return samples;
}

/* Takes only samples that were counted since the last time, of which there may be few. */
static void test_samples_that_are_set_aside_are_taken(void **state)
{
    (void)state;
    struct stack_table table = {0};
    uint64_t count;
    assert_int_equal(take_all(&table, 3, &count), 0);
    for (uint64_t i = 0; i < 9; i++)
        add_aside(&table, i, 3, 1u << i);
    add_aside(&table, 1, 5, 1000);
    add_aside(&table, 1, 0, 2000);
    add_aside(&table, 1, ASIDE_FOR_GOOD, 4000);
    stack_table_count(&table, 4, 0, 0, 0);
    assert_int_equal(take_all(&table, 3, &count), 9);
    assert_int_equal(count, 511);
    assert_int_equal(take_all(&table, 3, &count), 0);
    assert_int_equal(add_aside(&table, 7, 3, 1), 7);
    stack_table_count_sleeps(&table, 2, 1);
    stack_table_count_waited(&table, 5, 0.5);
    assert_int_equal(take_all(&table, 3, &count), 3);
    assert_int_equal(count, 128 + 1 + 4 + 32);
    assert_int_equal(take_all(&table, 5, &count), 1);
    assert_int_equal(take_all(&table, 0, &count) + take_all(&table, ASIDE_FOR_GOOD, &count), 0);
    stack_table_free(&table);
}

static void test_samples_that_are_set_aside_can_be_forgotten(void **state)
{
    (void)state;
    struct stack_table table = {0};
    struct renumber rows, none = {0};
    uint64_t count;
    for (uint64_t i = 0; i < 9; i++)
        add_aside(&table, i, 3, 1u << i);
    assert_int_equal(take_all(&table, 3, &count), 9);
    for (uint64_t i = 0; i < 9; i += 2)
        add_aside(&table, i, 3, 0);
    assert_int_equal(renumber_init(&rows, 9), 0);
    for (uint32_t i = 3; i < 9; i++)
        renumber_keep(&rows, i);
    renumber_assign(&rows);
    stack_table_keep(&table, &rows, &rows, &none, &none);
    assert_int_equal(take_all(&table, 3, &count), 3);
    assert_int_equal(count, 16 + 64 + 256);
    renumber_free(&rows);
    stack_table_free(&table);
}

static void test_the_epoch_of_the_last_count(void **state)
{
    (void)state;
    struct stack_table table = {0};
    uint64_t address = 1;
    uint32_t sample = add(&table, 1, STACK_WHOLE, &address, 1, 0, 0, 1);
    table.epoch = 1;
    assert_int_equal(table.samples[sample].epoch, 0);
    stack_table_count(&table, sample, 1, 1, 1);
    assert_int_equal(table.samples[sample].epoch, 1);
    table.epoch = 2;
    stack_table_count_sleeps(&table, sample, 1);
    assert_int_equal(table.samples[sample].epoch, 2);
    table.epoch = 3;
    stack_table_count_waited(&table, sample, 0.5);
    assert_int_equal(table.samples[sample].epoch, 3);
    assert_true(table.samples[sample].waited_ticks == 0.5);
    stack_table_free(&table);
}

static void test_counts_are_64_bits_wide(void **state)
{
    (void)state;
    struct stack_table table = {0};
    uint64_t addresses[] = {0x10};
    add(&table, 0, STACK_WHOLE, addresses, 1, 0, 0, UINT32_MAX);
    add(&table, 0, STACK_WHOLE, addresses, 1, 0, 0, UINT32_MAX);
    assert_int_equal(table.samples[0].count, 2ull * UINT32_MAX);
    assert_int_equal(table.samples[0].time_ns, 2000ull * UINT32_MAX);
    stack_table_free(&table);
}

static void test_100000_distinct_stacks(void **state)
{
    (void)state;
    enum { STACKS = 100000, DEPTH = 8 };
    struct stack_table table = {0};
    uint64_t addresses[DEPTH];
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < STACKS; i++) {
            for (uint32_t j = 0; j < DEPTH; j++)
                addresses[j] = 0x400000 + (i >> j) * 16ull + j;
            assert_int_equal(add(&table, 0, STACK_WHOLE, addresses, DEPTH, 0, 0, round + 1), i);
        }
    }
    assert_int_equal(table.stack_count, STACKS);
    assert_int_equal(table.sample_count, STACKS);
    assert_int_equal(table.address_count, STACKS * DEPTH);
    for (uint32_t i = 0; i < STACKS; i++)
        assert_int_equal(table.samples[i].count, 3);
    stack_table_free(&table);
    assert_int_equal(table.sample_count, 0);
    assert_null(table.addresses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_stacks_are_there_once),
        cmocka_unit_test(test_addresses_are_copied_in_order),
        cmocka_unit_test(test_labels_make_samples_of_their_own),
        cmocka_unit_test(test_each_label_makes_a_sample_of_its_own),
        cmocka_unit_test(test_cut_space_depth_and_order_make_stacks_of_their_own),
        cmocka_unit_test(test_stacks_without_frames),
        cmocka_unit_test(test_counting_on),
        cmocka_unit_test(test_sleeps),
        cmocka_unit_test(test_rows_can_be_forgotten),
        cmocka_unit_test(test_samples_that_are_set_aside_are_taken),
        cmocka_unit_test(test_samples_that_are_set_aside_can_be_forgotten),
        cmocka_unit_test(test_the_epoch_of_the_last_count),
        cmocka_unit_test(test_counts_are_64_bits_wide),
        cmocka_unit_test(test_100000_distinct_stacks),
    };
    return cmocka_run_group_tests_name("stack_table", tests, NULL, NULL);
}
