/* Sampled mappings: each counts as live until its middle is unmapped. */
#include "unit.h"
#include "agent/mappings.h"

#include <pthread.h>

static void test_parts(void **state)
{
    (void)state;
    assert_int_equal(mappings_take(0, UINT64_MAX), 0);
    assert_true(mappings_add(0x100000, 0x10000));
    assert_int_equal(mappings_take(0xf0000, 0x10000), 0);
    assert_int_equal(mappings_take(0x110000, 0x10000), 0);
    /* Unmapping either half, without the byte that represents the mapping. */
    assert_int_equal(mappings_take(0x100000, 0x7000), 0);
    assert_int_equal(mappings_take(0x108000, 0x8000), 0);
    assert_int_equal(mappings_take(0x107000, 0x1000), 0x100000);
    assert_int_equal(mappings_take(0, UINT64_MAX), 0);
    assert_true(mappings_add(0x1000, 1));
    assert_int_equal(mappings_take(0x1000, 1), 0x1000);
}

static void test_several_at_once(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 10; i++)
        assert_true(mappings_add(i << 20, 1 << 20));
    for (uint64_t i = 3; i <= 6; i++)
        assert_int_equal(mappings_take(3 << 20, 4 << 20), i << 20);
    assert_int_equal(mappings_take(3 << 20, 4 << 20), 0);
    unsigned left = 0;
    while (mappings_take(0, UINT64_MAX))
        left++;
    assert_int_equal(left, 6);
}

static void test_full(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= MAPPINGS_MAX; i++)
        assert_true(mappings_add(i << 12, 4096));
    assert_false(mappings_add(1, 4096));
    assert_int_equal(mappings_take(77 << 12, 4096), 77 << 12);
    assert_true(mappings_add(77 << 12, 4096));
    for (uint64_t i = 1; i <= MAPPINGS_MAX; i++)
        assert_int_equal(mappings_take(i << 12, 4096), i << 12);
}

static void *add_and_take(void *context)
{
    uint64_t base = (uint64_t)(uintptr_t)context << 40;
    for (uint64_t i = 1; i <= 20000; i++) {
        uint64_t start = base + (i << 20);
        if (!mappings_add(start, 4096) || mappings_take(start, 4096) != start)
            return context;
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    void *failed;
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_and_take, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(mappings_take(0, UINT64_MAX), 0);
}

static int set_up_table(void **state)
{
    (void)state;
    return !mappings_init();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_several_at_once),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_many_threads),
    };
    return cmocka_run_group_tests_name("mappings", tests, set_up_table, NULL);
}
