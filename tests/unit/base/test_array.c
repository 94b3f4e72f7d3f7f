#include "unit.h"
#include "base/array.h"

#include <errno.h>

/* AddressSanitizer aborts the program at an impossible allocation unless this option is set
 * (sanitizer_flags.inc of LLVM). It finds this function by its name. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void test_first_reserve_allocates(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    size_t capacity = 0;
    assert_int_equal(array_reserve(&items, &capacity, 1), 0);
    assert_non_null(items);
    assert_in_range(capacity, 1, 1024);
    /* A sanitizer build detects it if the memory is smaller than reported. */
    memset(items, 0xff, capacity * sizeof *items);
    free(items);
}

static void test_nothing_happens_while_there_is_room(void **state)
{
    (void)state;
    int *items = NULL;
    size_t capacity = 0;
    assert_int_equal(array_reserve(&items, &capacity, 20), 0);
    int *before = items;
    size_t capacity_before = capacity;
    for (size_t needed = 0; needed <= capacity_before; needed++)
        assert_int_equal(array_reserve(&items, &capacity, needed), 0);
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, capacity_before);
    free(items);
}

static void test_growing_keeps_items_and_at_least_doubles(void **state)
{
    (void)state;
    size_t *items = NULL;
    size_t capacity = 0, growths = 0;
    for (size_t i = 0; i < 10000; i++) {
        size_t before = capacity;
        assert_int_equal(array_reserve(&items, &capacity, i + 1), 0);
        assert_true(capacity > i);
        if (capacity != before) {
            assert_true(capacity >= 2 * before);
            growths++;
        }
        items[i] = i * 7;
    }
    assert_in_range(growths, 2, 14);
    for (size_t i = 0; i < 10000; i++)
        assert_int_equal(items[i], i * 7);
    free(items);
}

static void test_one_step_may_be_large(void **state)
{
    (void)state;
    char *items = NULL;
    size_t capacity = 0;
    assert_int_equal(array_reserve(&items, &capacity, 3), 0);
    memcpy(items, "ab", 3);
    assert_int_equal(array_reserve(&items, &capacity, 100001), 0);
    assert_true(capacity >= 100001);
    assert_string_equal(items, "ab");
    items[100000] = 'x';
    free(items);
}

static void assert_refused(size_t needed, size_t item_bytes)
{
    size_t *items = malloc(2 * sizeof *items);
    assert_non_null(items);
    items[0] = 5;
    items[1] = 6;
    size_t *before = items;
    size_t capacity = 2;
    assert_ptr_equal(array_grow(items, &capacity, needed, item_bytes), before);
    assert_int_equal(capacity, 2);
    assert_int_equal(array_reserve(&items, &capacity, SIZE_MAX), -ENOMEM);
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, 2);
    assert_int_equal(items[0], 5);
    assert_int_equal(items[1], 6);
    free(items);
}

static void test_overflow_changes_nothing(void **state)
{
    (void)state;
    assert_refused(SIZE_MAX, 1);              /* no power of two is as large */
    assert_refused(SIZE_MAX / 2 + 2, 1);      /* the last doubling overflows */
    assert_refused(SIZE_MAX / 4, 16);         /* items * bytes overflows */
    assert_refused(((size_t)1 << 60) + 1, 8); /* items * bytes is 2^64, which is 0 */
}

static void test_memory_is_given_back(void **state)
{
    (void)state;
    int *items = NULL;
    size_t capacity = 0;
    assert_int_equal(array_reserve(&items, &capacity, 100000), 0);
    size_t before = capacity;
    for (int i = 0; i < 5000; i++)
        items[i] = i;
    array_trim(&items, &capacity, capacity / 4);
    assert_int_equal(capacity, before);
    array_trim(&items, &capacity, 5000);
    assert_in_range(capacity, 5000, 20000);
    memset(&items[5000], 0xff, (capacity - 5000) * sizeof *items);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(items[i], i);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_reserve_allocates),
        cmocka_unit_test(test_nothing_happens_while_there_is_room),
        cmocka_unit_test(test_growing_keeps_items_and_at_least_doubles),
        cmocka_unit_test(test_one_step_may_be_large),
        cmocka_unit_test(test_overflow_changes_nothing),
        cmocka_unit_test(test_memory_is_given_back),
    };
    return cmocka_run_group_tests_name("array", tests, NULL, NULL);
}
