/* Goroutines in this process's memory. */
#include "sampler/goroutines.h"
#include "one_thread.h"

#define GOROUTINES 3
#define STACK_WORDS 512

static const struct go_layout *layout;
static unsigned char goroutines[GOROUTINES][GOROUTINE_BYTES_MAX] __attribute__((aligned(8)));
static uint64_t stacks[GOROUTINES][STACK_WORDS];
static uint64_t pointers[GOROUTINES], first, count; /* as in the runtime */
static struct program program = {.references = 1000};

static void put(size_t number, size_t offset, uint64_t value)
{
    memcpy(goroutines[number] + offset, &value, sizeof value);
}

static void begin_anew(struct one_thread *world)
{
    goroutines_forget(&world->process.goroutines);
    world->process.goroutines.place =
        (struct go_place){layout, (uintptr_t)&first, (uintptr_t)&count};
}

static int begin(void **state)
{
    struct one_thread *world = one_thread_new(getpid());
    layout = go_layout_of(26);
    memset(goroutines, 0, sizeof goroutines);
    for (size_t i = 0; i < GOROUTINES; i++) {
        pointers[i] = (uintptr_t)goroutines[i];
        stacks[i][STACK_WORDS - 2] = 100 + i;
        put(i, 0, (uintptr_t)stacks[i]);
        put(i, 8, (uintptr_t)(stacks[i] + STACK_WORDS));
        put(i, layout->g_sched, (uintptr_t)(stacks[i] + STACK_WORDS - 2));
        put(i, layout->g_id, 18 + i);
        goroutines[i][layout->g_status] = 4;
    }
    first = (uintptr_t)pointers;
    count = GOROUTINES;
    world->sampler.clock.ticks.period_ns = 60000000000u; /* time for a whole pass */
    world->process.program = &program;
    begin_anew(world);
    *state = world;
    return 0;
}

static int end(void **state)
{
    struct one_thread *world = *state;
    goroutines_forget(&world->process.goroutines);
    return one_thread_free(state);
}

/* Reads once, and returns the changes; false if there are none. The caller releases the message. */
static bool read_changes(struct one_thread *world, struct message *ret_message)
{
    world->process.goroutines.reported_ns = 0;
    assert_int_equal(goroutines_update(&world->sampler, &world->process), 0);
    return channel_receive(world->sampler.channel, false, ret_message);
}

static void release(struct one_thread *world, struct message *message)
{
    channel_release(world->sampler.channel, message);
    channel_done(world->sampler.channel);
}

static void test_parked_goroutines_are_told_once(void **state)
{
    struct one_thread *world = *state;
    struct message message;
    assert_true(read_changes(world, &message));
    const struct goroutine_changes *changes = message.goroutines.changes;
    assert_int_equal(message.kind, MESSAGE_GOROUTINES);
    assert_int_equal(changes->count, GOROUTINES);
    assert_true(changes->seen_ns > 0);
    for (size_t i = 0; i < GOROUTINES; i++) {
        const struct goroutine_seen *seen = &changes->items[i];
        assert_true(seen->is_parked && !seen->has_moved);
        assert_int_equal(seen->goroutine.id, 18 + seen->number);
        assert_int_equal(seen->stack_bytes, 16);
        assert_memory_equal(changes->stacks + seen->stack_at,
                            &stacks[seen->number][STACK_WORDS - 2], 16);
    }
    release(world, &message);
    assert_true(read_changes(world, &message)); /* all are where they were */
    assert_int_equal(message.goroutines.changes->count, 0);
    release(world, &message);
}

static void test_changes_are_told(void **state)
{
    struct one_thread *world = *state;
    struct message message;
    assert_true(read_changes(world, &message));
    release(world, &message);
    goroutines[0][layout->g_sequence]++;
    goroutines[1][layout->g_status] = 2;
    goroutines[2][layout->g_status] = 8; /* its stack is being moved, which takes a moment */
    assert_true(read_changes(world, &message));
    const struct goroutine_changes *changes = message.goroutines.changes;
    assert_int_equal(changes->count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(changes->items[i].before_ns <= changes->items[i].at_ns);
        assert_int_equal(changes->items[i].is_parked, changes->items[i].number == 0);
    }
    release(world, &message);
    goroutines[1][layout->g_status] = 6; /* dead, after it was on a thread */
    assert_true(read_changes(world, &message));
    assert_int_equal(message.goroutines.changes->count, 0);
    release(world, &message);
}

/* Only goroutines that can't be read are left out. */
static void test_wild_pointers(void **state)
{
    static const uint64_t wild[] = {0, 8, 1, UINT64_MAX, (uint64_t)1 << 63, 0x7fff00000010};
    struct one_thread *world = *state;
    struct message message;
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        pointers[1] = wild[i];
        begin_anew(world);
        assert_true(read_changes(world, &message));
        assert_int_equal(message.goroutines.changes->count, GOROUTINES - 1);
        assert_true(message.goroutines.changes->seen_ns > 0);
        release(world, &message);
    }
}

static void test_wild_lists(void **state)
{
    static const uint64_t lengths[] = {(uint64_t)1 << 40, UINT64_MAX};
    struct one_thread *world = *state;
    struct message message;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        count = lengths[i];
        begin_anew(world);
        for (unsigned ticks = 0; ticks < 1000 && !world->process.goroutines.has_read_all; ticks++) {
            if (read_changes(world, &message))
                release(world, &message);
        }
        assert_true(world->process.goroutines.count <= GOROUTINES_MAX);
        assert_int_equal(world->process.goroutines.left_out, lengths[i] - GOROUTINES_MAX);
    }
    first = (uint64_t)1 << 62;
    begin_anew(world);
    assert_true(read_changes(world, &message));
    assert_int_equal(message.goroutines.changes->count, 0);
    release(world, &message);
    world->process.goroutines.place.first = 16;
    if (read_changes(world, &message))
        release(world, &message);
}

#define LISTED_IN_A_TICK 1024

/* A tick does not have time to list a million. */
static void test_a_tick_lists_a_part(void **state)
{
    struct one_thread *world = *state;
    const struct sampled_goroutines *known = &world->process.goroutines;
    uint64_t *nowhere = malloc(GOROUTINES_MAX * sizeof *nowhere);
    struct message message;
    size_t ticks = 0;
    assert_non_null(nowhere);
    for (size_t i = 0; i < GOROUTINES_MAX; i++)
        nowhere[i] = 8;
    first = (uintptr_t)nowhere;
    count = GOROUTINES_MAX;
    world->sampler.clock.ticks.period_ns = 0;
    while (!known->has_read_all) {
        size_t before = known->count;
        if (read_changes(world, &message))
            release(world, &message);
        assert_true(known->count - before <= LISTED_IN_A_TICK);
        assert_true(++ticks < 10 * GOROUTINES_MAX / LISTED_IN_A_TICK);
    }
    assert_int_equal(known->count, GOROUTINES_MAX);
    free(nowhere);
}

#define MANY 3000
#define TICKS 20

/* In any order, some before the first pass and some after it. */
static void test_each_of_many_is_told_once(void **state)
{
    static const size_t counts[] = {1500, 1501, 1700, 2900, MANY};
    static unsigned char many[MANY][GOROUTINE_BYTES_MAX] __attribute__((aligned(8)));
    static uint64_t shuffled[MANY];
    static unsigned told[MANY];
    struct one_thread *world = *state;
    struct message message;
    size_t all_told = 0;
    for (size_t i = 0; i < MANY; i++) {
        memcpy(many[i], goroutines[0], sizeof many[i]);
        shuffled[i] = (uintptr_t)many[i * 7 % MANY];
    }
    first = (uintptr_t)shuffled;
    for (size_t pass = 0; pass < sizeof counts / sizeof *counts; pass++) {
        count = counts[pass];
        /* On a slow machine, a tick has time for only some of them. */
        for (unsigned tick = 0; tick < TICKS && all_told < count; tick++) {
            for (bool any = read_changes(world, &message); any;
                 any = channel_receive(world->sampler.channel, false, &message)) {
                for (size_t i = 0; i < message.goroutines.changes->count; i++) {
                    const struct goroutine_seen *seen = &message.goroutines.changes->items[i];
                    assert_int_equal(seen->address, shuffled[seen->number]);
                    told[seen->number]++;
                    all_told++;
                }
                release(world, &message);
            }
        }
        for (size_t i = 0; i < MANY; i++)
            assert_int_equal(told[i], i < count);
    }
}

/* A stack that does not exist, and one that is longer than the limit of a copy. */
static void test_wild_stacks(void **state)
{
    struct one_thread *world = *state;
    struct message message;
    put(0, 0, 0x10000);
    put(0, 8, 0x20000);
    put(0, layout->g_sched, 0x11000);
    put(1, 8, (uintptr_t)stacks[1] + ((uint64_t)8 << 30));
    assert_true(read_changes(world, &message));
    bool has_more = true;
    for (size_t left = GOROUTINES; left && has_more;) {
        const struct goroutine_changes *changes = message.goroutines.changes;
        assert_true(changes->count <= left &&
                    changes->stack_bytes <= GOROUTINE_CHANGES_STACK_BYTES);
        left -= changes->count;
        for (size_t i = 0; i < changes->count; i++) {
            if (changes->items[i].number == 0)
                assert_int_equal(changes->items[i].stack_bytes, 0);
        }
        release(world, &message);
        has_more = left && (channel_receive(world->sampler.channel, false, &message) ||
                            read_changes(world, &message));
    }
    while (channel_receive(world->sampler.channel, false, &message))
        release(world, &message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parked_goroutines_are_told_once, begin, end),
        cmocka_unit_test_setup_teardown(test_changes_are_told, begin, end),
        cmocka_unit_test_setup_teardown(test_wild_pointers, begin, end),
        cmocka_unit_test_setup_teardown(test_wild_lists, begin, end),
        cmocka_unit_test_setup_teardown(test_a_tick_lists_a_part, begin, end),
        cmocka_unit_test_setup_teardown(test_each_of_many_is_told_once, begin, end),
        cmocka_unit_test_setup_teardown(test_wild_stacks, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
