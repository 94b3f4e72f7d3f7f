/* The set of live addresses: nothing is missed, and it uses no more memory than promised. */
#include "unit.h"
#include "agent/format.h"
#include "agent/live.h"
#include "agent/mappings.h"
#include "agent/pages.h"
#include "base/random.h"

#include <pthread.h>
#include <sys/wait.h>

static struct live live;

static int set_up(void **state)
{
    (void)state;
    void *memory = pages_new(LIVE_FIRST_BYTES);
    if (!memory)
        return -1;
    live_init(&live, memory);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 1; i < LIVE_TABLES && live.tables[i]; i++)
        pages_free(live.tables[i], ((size_t)LIVE_BUCKETS << i) * sizeof(struct live_bucket));
    pages_free((void *)live.filter, LIVE_FIRST_BYTES);
    return 0;
}

static uint64_t address_of(uint64_t n)
{
    return (random_number(7, n) >> 17) << 4 | 0x10;
}

static unsigned filter_sum(void)
{
    unsigned sum = 0;
    for (size_t i = 0; i < LIVE_FILTER_BYTES; i++)
        sum += live.filter[i];
    return sum;
}

static void test_added_and_removed(void **state)
{
    (void)state;
    assert_false(live_may_have(&live, 0x1230));
    assert_false(live_remove(&live, 0x1230));
    assert_true(live_add(&live, 0x1230));
    assert_true(live_may_have(&live, 0x1230));
    assert_false(live_remove(&live, 0x1240));
    assert_true(live_remove(&live, 0x1230));
    assert_false(live_remove(&live, 0x1230));
    assert_false(live_may_have(&live, 0x1230));
}

/* free(NULL) removes nothing, even if a live address has the same place in the filter. */
static void test_null_is_never_there(void **state)
{
    (void)state;
    uint64_t address = 0x10;
    while (live_filter_place(address) != live_filter_place(0))
        address += 0x10;
    assert_true(live_add(&live, address));
    assert_false(live_remove(&live, 0));
    assert_true(live_may_have(&live, address));
    assert_true(live_remove(&live, address));
}

/* The memory that is mapped for the set. */
static size_t mapped_bytes(void)
{
    size_t bytes = LIVE_FILTER_BYTES;
    for (unsigned i = 0; i < LIVE_TABLES; i++)
        bytes += live.tables[i] ? ((size_t)LIVE_BUCKETS << i) * sizeof(struct live_bucket) : 0;
    return bytes;
}

/* The limit on memory: 2 MiB with the ring, and 64 bytes for each live address. */
static void test_many(void **state)
{
    (void)state;
    enum { COUNT = 500000, FIXED_BYTES = 768 << 10, MAPPING_BYTES = 2 * sizeof(uint64_t) };
    assert_true(FIXED_BYTES + MAPPINGS_MAX * MAPPING_BYTES + AGENT_HEADER_BYTES +
                    AGENT_RING_BYTES <=
                2u << 20);
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_true(live_add(&live, address_of(i)));
        if (i % 1000 == 0)
            assert_true(mapped_bytes() <= FIXED_BYTES + 64 * (i + 1));
    }
    for (uint64_t i = 0; i < COUNT; i += 2)
        assert_true(live_remove(&live, address_of(i)));
    /* Slots in earlier tables are free now; addresses in later tables are still found. */
    for (uint64_t i = 0; i < COUNT; i += 2)
        assert_true(live_add(&live, address_of(COUNT + i)));
    for (uint64_t i = 0; i < COUNT; i += 2) {
        assert_true(live_may_have(&live, address_of(i + 1)));
        assert_true(live_remove(&live, address_of(i + 1)));
        assert_false(live_remove(&live, address_of(i)));
        assert_true(live_remove(&live, address_of(COUNT + i)));
    }
    assert_int_equal(live_clear(&live), 0);
}

/* Few frees of other objects pass the filter, for small objects and for those with a mapping of
 * their own. */
static void test_filter(void **state)
{
    (void)state;
    static const uint64_t steps[] = {32, 1040, 4096, 135168};
    for (unsigned s = 0; s < 4; s++) {
        unsigned passed = 0;
        for (uint64_t i = 0; i < 1000; i++)
            assert_true(live_add(&live, 0x7f0000000010 + steps[s] * (i * 97)));
        for (uint64_t i = 0; i < 100000; i++)
            passed += i % 97 != 0 && live_may_have(&live, 0x7f0000000010 + steps[s] * i);
        assert_true(passed < 3000);
        assert_int_equal(live_clear(&live), 1000);
        assert_int_equal(filter_sum(), 0);
    }
}

/* A byte of the filter that was once full may say yes for ever, but never a wrong no. */
static void test_full_byte(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    uint64_t same[COUNT], n = 1;
    for (unsigned i = 0; i < COUNT; i++) {
        while (live_filter_place(n << 4) != 5)
            n++;
        same[i] = n++ << 4;
        assert_true(live_add(&live, same[i]));
    }
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(live_may_have(&live, same[i]));
        assert_true(live_remove(&live, same[i]));
    }
    assert_true(live_may_have(&live, same[0]));
}

static void test_child_of_fork(void **state)
{
    (void)state;
    int status;
    for (uint64_t i = 0; i < 10000; i++)
        assert_true(live_add(&live, address_of(i)));
    pid_t child = fork();
    if (child == 0) {
        bool has = false;
        for (uint64_t i = 0; i < 10000; i++)
            has |= live_may_have(&live, address_of(i)) || live_remove(&live, address_of(i));
        _exit(has || !live_add(&live, 0x10) || !live_remove(&live, 0x10));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(live_clear(&live), 10000);
}

/* Each thread has addresses of its own, and a few that all threads try to remove. */
#define THREADS 4u
#define ROUNDS 20000u
static _Atomic uint64_t removed_shared;

static void *add_and_remove(void *context)
{
    uint64_t first = (uintptr_t)context * 1000000;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        if (!live_add(&live, address_of(first + i)))
            return context;
        if (i >= 500 && !live_remove(&live, address_of(first + i - 500)))
            return context;
        removed_shared += live_remove(&live, address_of(9000000 + i / 10));
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    void *failed;
    removed_shared = 0;
    for (uint64_t i = 0; i < ROUNDS / 10; i++)
        assert_true(live_add(&live, address_of(9000000 + i)));
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_and_remove, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(removed_shared, ROUNDS / 10);
    assert_int_equal(live_clear(&live), THREADS * 500);
    assert_int_equal(filter_sum(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_added_and_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_null_is_never_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_filter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_child_of_fork, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_threads, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
