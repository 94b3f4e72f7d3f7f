/* Deadlocks among threads that have only owners and times. */
#include "owners_world.h"
#include "worker/owners.h"

/* The thread has slept at an address of its own, observed asleep since that time. */
static struct counted_thread *asleep(struct world *world, uint32_t number, uint64_t since_ns)
{
    struct counted_thread *thread =
        counted_threads_get(&world->threads, number, 1000 + (pid_t)number);
    assert_non_null(thread);
    thread->name = 10 + number;
    thread->account.sleeps_on = true;
    thread->account.slept_ns = since_ns;
    thread->account.owner_plus_1 = 0;
    thread->account.is_in_deadlock = false;
    thread->account.last_sample = sample_at(world, 0x100 + number);
    return thread;
}

static void waits_for_kind(struct world *world, uint32_t thread, uint32_t owner, uint64_t at_ns,
                           enum resource_kind kind)
{
    const struct held_wait wait = {
        .thread = thread, .owner = owner, .owner_read_ns = at_ns, .wait.kind = kind};
    assert_int_equal(owners_detect_deadlock(&world->owners, &world->results, &wait), 0);
}

static void waits_for(struct world *world, uint32_t thread, uint32_t owner, uint64_t at_ns)
{
    waits_for_kind(world, thread, owner, at_ns, RESOURCE_MUTEX);
}

static uint32_t found(const struct world *world)
{
    return world->results.deadlocks.count;
}

static void test_a_deadlock_is_told_once(void **state)
{
    struct world *world = *state;
    const struct deadlocks *deadlocks = &world->results.deadlocks;
    for (uint32_t i = 0; i < 3; i++)
        asleep(world, i, 100 + i);
    asleep(world, 3, 100);
    for (uint64_t at_ns = 200; at_ns < 500; at_ns += 100) {
        waits_for(world, 0, 1, at_ns);
        waits_for(world, 1, 2, at_ns + 1);
        waits_for(world, 3, 0, at_ns + 1); /* for one in the cycle, of which it is not a part */
        waits_for(world, 2, 0, at_ns + 2);
        assert_int_equal(found(world), 1);
    }
    assert_int_equal(deadlocks->row_count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct deadlock_thread *row = &deadlocks->rows[i];
        assert_int_equal(row->deadlock, 0);
        assert_int_equal(row->tid, 1000 + (2 + i) % 3); /* from the last one that was read */
        assert_int_equal(row->name, 10 + (2 + i) % 3);
        assert_int_equal(row->since_ns, 102);
        const struct counted_stack *stack = &world->results.stacks.stacks[row->stack];
        assert_int_equal(world->results.stacks.addresses[stack->first_address],
                         0x100 + (2 + i) % 3);
    }
}

/* Thread 0 fell asleep after thread 1's owner was read, so it may have released that lock before.
 */
static void test_waits_that_were_not_there_together(void **state)
{
    struct world *world = *state;
    asleep(world, 0, 300);
    asleep(world, 1, 100);
    waits_for(world, 1, 0, 200);
    waits_for(world, 0, 1, 300);
    assert_int_equal(found(world), 0);
    waits_for(world, 1, 0, 299);
    assert_int_equal(found(world), 0);
    waits_for(world, 1, 0, 300);
    assert_int_equal(found(world), 1);
}

static void test_threads_that_have_moved(void **state)
{
    struct world *world = *state;
    asleep(world, 0, 100);
    struct counted_thread *other = asleep(world, 1, 100);
    waits_for(world, 1, 0, 200);
    other->account.sleeps_on = false;
    waits_for(world, 0, 1, 200);
    assert_int_equal(found(world), 0);
    other = asleep(world, 1, 300); /* waits for something else now */
    waits_for(world, 0, 1, 400);
    assert_int_equal(found(world), 0);
    waits_for(world, 1, 0, 400);
    assert_int_equal(found(world), 1);
    /* They got out of it by a timeout, and into it again. */
    asleep(world, 0, 500);
    asleep(world, 1, 500);
    waits_for(world, 0, 1, 600);
    waits_for(world, 1, 0, 600);
    assert_int_equal(found(world), 2);
    assert_int_equal(world->results.deadlocks.rows[2].deadlock, 1);
    other->is_gone = true;
    asleep(world, 0, 700);
    waits_for(world, 0, 1, 800);
    assert_int_equal(found(world), 2);
}

/* The kernel's record shows a wait that is over: the thread may be anywhere by now. */
static void test_waits_that_are_over(void **state)
{
    struct world *world = *state;
    struct counted_thread *moved = asleep(world, 0, 100);
    asleep(world, 1, 100);
    moved->account.sleep_is_over = true;
    waits_for(world, 0, 1, 200);
    waits_for(world, 1, 0, 200);
    waits_for(world, 0, 1, 300);
    assert_int_equal(found(world), 0);
    moved->account.sleep_is_over = false; /* asleep again, as observed */
    waits_for(world, 0, 1, 400);
    assert_int_equal(found(world), 1);
}

static void test_a_thread_that_waits_for_itself(void **state)
{
    struct world *world = *state;
    asleep(world, 4, 100);
    waits_for(world, 4, 4, 100);
    assert_int_equal(found(world), 1);
    assert_int_equal(world->results.deadlocks.row_count, 1);
}

/* One thread waits for data that the other may just have sent. */
static void test_cycles_that_are_no_deadlocks(void **state)
{
    struct world *world = *state;
    asleep(world, 0, 100);
    asleep(world, 1, 100);
    waits_for_kind(world, 0, 1, 200, RESOURCE_PIPE);
    waits_for(world, 1, 0, 200);
    waits_for_kind(world, 0, 1, 300, RESOURCE_PIPE);
    assert_int_equal(found(world), 0);
    waits_for_kind(world, 0, 1, 400, RESOURCE_THREAD);
    assert_int_equal(found(world), 1);
}

static void test_very_long_cycles_are_not_followed(void **state)
{
    struct world *world = *state;
    for (uint32_t length = DEADLOCK_THREADS_MAX; length <= DEADLOCK_THREADS_MAX + 1; length++) {
        for (uint32_t i = 0; i < length; i++)
            asleep(world, i, 100);
        for (uint32_t i = 0; i < length; i++)
            waits_for(world, i, (i + 1) % length, 200);
        assert_int_equal(found(world), 1);
    }
    assert_int_equal(world->results.deadlocks.row_count, DEADLOCK_THREADS_MAX);
}

static void test_rows_are_limited(void **state)
{
    struct world *world = *state;
    for (uint32_t i = 0; i < DEADLOCKS_MAX + 10; i++) {
        asleep(world, i, 100);
        waits_for(world, i, i, 100);
    }
    assert_int_equal(found(world), DEADLOCKS_MAX + 10);
    assert_int_equal(world->results.deadlocks.row_count, DEADLOCKS_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_deadlock_is_told_once),           TEST(test_waits_that_were_not_there_together),
        TEST(test_threads_that_have_moved),           TEST(test_waits_that_are_over),
        TEST(test_a_thread_that_waits_for_itself),    TEST(test_cycles_that_are_no_deadlocks),
        TEST(test_very_long_cycles_are_not_followed), TEST(test_rows_are_limited),
    };
    return cmocka_run_group_tests_name("cycles", tests, NULL, NULL);
}
