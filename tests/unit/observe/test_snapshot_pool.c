/* The snapshots of a recording, whose number and size are limited. */
#include "unit.h"
#include "observe/snapshot_pool.h"

#include <pthread.h>
#include <sched.h>

static const struct stack_place none = {0};

static void test_so_many_and_no_more(void **state)
{
    (void)state;
    static struct snapshot *taken[SNAPSHOTS_MAX];
    struct snapshot_pool *snapshots;
    assert_int_equal(snapshot_pool_new(&snapshots), 0);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++) {
        taken[i] = snapshot_pool_take(snapshots, 64, &none);
        assert_non_null(taken[i]);
        assert_true(taken[i]->stack.capacity >= 64);
        for (size_t j = 0; j < i && i < 16; j++)
            assert_ptr_not_equal(taken[i], taken[j]);
    }
    assert_null(snapshot_pool_take(snapshots, 64, &none));
    /* From the worker, and from the thread that takes. */
    snapshot_pool_give(snapshots, taken[3], true);
    assert_ptr_equal(snapshot_pool_take(snapshots, 64, &none), taken[3]);
    assert_null(snapshot_pool_take(snapshots, 64, &none));
    snapshot_pool_give(snapshots, taken[5], false);
    assert_ptr_equal(snapshot_pool_take(snapshots, 64, &none), taken[5]);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        snapshot_pool_give(snapshots, taken[i], i % 2);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        assert_non_null(snapshot_pool_take(snapshots, 64, &none));
    snapshot_pool_free(snapshots);
    snapshot_pool_free(NULL);
}

static void test_room_for_both_stacks(void **state)
{
    (void)state;
    const struct stack_place other = {0x1000, 5000};
    struct snapshot_pool *snapshots;
    assert_int_equal(snapshot_pool_new(&snapshots), 0);
    struct snapshot *snapshot = snapshot_pool_take(snapshots, 3000, &other);
    assert_non_null(snapshot);
    assert_true(snapshot->stack.capacity >= 3000);
    assert_true(snapshot->other_stack.capacity >= 5000);
    snapshot_pool_give(snapshots, snapshot, false);
    snapshot_pool_free(snapshots);
}

static void test_bytes_are_bounded(void **state)
{
    (void)state;
    struct snapshot *taken[4];
    struct snapshot_pool *snapshots;
    assert_int_equal(snapshot_pool_new(&snapshots), 0);
    for (size_t i = 0; i < 4; i++) {
        taken[i] = snapshot_pool_take(snapshots, SNAPSHOTS_BYTES_MAX / 4, &none);
        assert_non_null(taken[i]);
    }
    assert_null(snapshot_pool_take(snapshots, 4096, &none));
    /* Large memory is not kept, so the next snapshots may be large too. */
    for (size_t i = 0; i < 4; i++) {
        snapshot_pool_give(snapshots, taken[i], i % 2);
        struct snapshot *next = snapshot_pool_take(snapshots, SNAPSHOTS_BYTES_MAX / 4, &none);
        assert_non_null(next);
        assert_null(snapshot_pool_take(snapshots, 4096, &none));
        snapshot_pool_give(snapshots, next, true);
        taken[i] = snapshot_pool_take(snapshots, 4096, &none);
        assert_non_null(taken[i]);
        assert_true(taken[i]->stack.capacity <= 65536);
        snapshot_pool_give(snapshots, taken[i], false);
        taken[i] = snapshot_pool_take(snapshots, SNAPSHOTS_BYTES_MAX / 4, &none);
        assert_non_null(taken[i]);
    }
    for (size_t i = 0; i < 4; i++)
        snapshot_pool_give(snapshots, taken[i], true);
    snapshot_pool_free(snapshots);
}

/* A large snapshot that is used many times, as for a thread with a deep stack, is counted once. */
static void test_bytes_are_counted_once(void **state)
{
    (void)state;
    struct snapshot_pool *snapshots;
    assert_int_equal(snapshot_pool_new(&snapshots), 0);
    for (size_t i = 0; i < 1000; i++) {
        struct snapshot *snapshot =
            snapshot_pool_take(snapshots, i % 3 ? 16384 : SNAPSHOTS_BYTES_MAX / 2, &none);
        assert_non_null(snapshot);
        snapshot_pool_give(snapshots, snapshot, i % 2);
    }
    snapshot_pool_free(snapshots);
}

/* The worker was behind, with stacks of 16 MiB. */
static void test_what_a_backlog_needed_is_not_kept(void **state)
{
    (void)state;
    static struct snapshot *taken[SNAPSHOTS_MAX];
    size_t kept_bytes = 0;
    struct snapshot_pool *snapshots;
    assert_int_equal(snapshot_pool_new(&snapshots), 0);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        assert_non_null(taken[i] = snapshot_pool_take(snapshots, 32768, &none));
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        snapshot_pool_give(snapshots, taken[i], true);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        kept_bytes += snapshot_pool_take(snapshots, 0, &none)->stack.capacity;
    assert_in_range(kept_bytes, 1, 8 << 20);
    snapshot_pool_free(snapshots);
}

/* Small snapshots that are no longer taken do not prevent larger ones from being kept. */
static void test_memory_goes_to_those_in_use(void **state)
{
    (void)state;
    static struct snapshot *taken[SNAPSHOTS_MAX];
    struct snapshot_pool *snapshots;
    assert_int_equal(snapshot_pool_new(&snapshots), 0);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        assert_non_null(taken[i] = snapshot_pool_take(snapshots, 16384, &none));
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        snapshot_pool_give(snapshots, taken[i], false);
    for (size_t i = 0; i < 100; i++)
        snapshot_pool_give(snapshots, snapshot_pool_take(snapshots, 32768, &none), false);
    assert_in_range(snapshot_pool_take(snapshots, 0, &none)->stack.capacity, 32768, SIZE_MAX);
    snapshot_pool_free(snapshots);
}

struct worker {
    struct snapshot_pool *snapshots;
    struct snapshot *_Atomic handed[64];
};

static void *give_all(void *context)
{
    struct worker *worker = context;
    for (unsigned left = 20000; left;) {
        for (size_t i = 0; i < 64 && left; i++) {
            struct snapshot *snapshot = worker->handed[i];
            if (!snapshot)
                continue;
            worker->handed[i] = NULL;
            snapshot->stack.bytes = left--; /* it is the worker's until it is given */
            snapshot_pool_give(worker->snapshots, snapshot, true);
        }
        sched_yield();
    }
    return NULL;
}

static void test_two_threads(void **state)
{
    (void)state;
    static struct worker worker;
    pthread_t thread;
    assert_int_equal(snapshot_pool_new(&worker.snapshots), 0);
    assert_int_equal(pthread_create(&thread, NULL, give_all, &worker), 0);
    for (unsigned left = 20000; left;) {
        for (size_t i = 0; i < 64 && left; i++) {
            if (worker.handed[i])
                continue;
            struct snapshot *snapshot =
                snapshot_pool_take(worker.snapshots, left % 100 ? 4096 : 200000, &none);
            assert_non_null(snapshot);
            snapshot->stack.bytes = 0;
            worker.handed[i] = snapshot;
            left--;
        }
        sched_yield();
    }
    pthread_join(thread, NULL);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        assert_non_null(snapshot_pool_take(worker.snapshots, 64, &none));
    snapshot_pool_free(worker.snapshots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_so_many_and_no_more),
        cmocka_unit_test(test_room_for_both_stacks),
        cmocka_unit_test(test_bytes_are_bounded),
        cmocka_unit_test(test_bytes_are_counted_once),
        cmocka_unit_test(test_what_a_backlog_needed_is_not_kept),
        cmocka_unit_test(test_memory_goes_to_those_in_use),
        cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests_name("snapshot_pool", tests, NULL, NULL);
}
