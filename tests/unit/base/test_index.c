#include "unit.h"
#include "base/index.h"

#define MANY 20000u

/* The items are numbers, in the order in which they were added. */
static bool is_same(const void *owner, uint32_t item, const void *key)
{
    const uint64_t *items = owner;
    return items[item] == *(const uint64_t *)key;
}

/* Adds `count` items under their hashes, then finds each, and none that was not added. */
static void fill_and_check(uint64_t (*hash_of)(uint64_t), size_t count)
{
    struct index index = {0};
    uint64_t *items = calloc(count, sizeof *items);
    assert_non_null(items);
    for (uint32_t i = 0; i < count; i++) {
        items[i] = i * 3ull;
        assert_int_equal(index_find(&index, hash_of(items[i]), is_same, items, &items[i]),
                         INDEX_NONE);
        assert_int_equal(index_add(&index, hash_of(items[i]), i), 0);
    }
    assert_int_equal(index.used, count);
    assert_true(index.slot_count > count);
    assert_int_equal(index.slot_count & (index.slot_count - 1), 0);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t missing = items[i] + 1;
        assert_int_equal(index_find(&index, hash_of(items[i]), is_same, items, &items[i]), i);
        assert_int_equal(index_find(&index, hash_of(missing), is_same, items, &missing),
                         INDEX_NONE);
    }
    index_free(&index);
    assert_int_equal(index.slot_count, 0);
    assert_null(index.slots);
    free(items);
}

static void test_items_can_be_removed(void **state)
{
    (void)state;
    struct index index = {0};
    uint64_t items[100];
    index_clear(&index, index.used);
    for (uint32_t i = 0; i < 100; i++) {
        items[i] = i;
        assert_int_equal(index_add(&index, i, i), 0);
    }
    size_t slot_count = index.slot_count;
    const struct index_slot *slots = index.slots;
    index_clear(&index, index.used);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(index_find(&index, i, is_same, items, &items[i]), INDEX_NONE);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(index_add(&index, i, i), 0);
    assert_int_equal(index.used, 100);
    assert_int_equal(index.slot_count, slot_count);
    assert_ptr_equal(index.slots, slots);
    assert_int_equal(index_find(&index, 99, is_same, items, &items[99]), 99);
    index_free(&index);
}

static void test_memory_of_items_that_go_is_given_back(void **state)
{
    (void)state;
    struct index index = {0};
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(index_add(&index, i, i), 0);
    index_clear(&index, 500);
    size_t slot_count = index.slot_count;
    assert_in_range(slot_count, 500 * 4 / 3, 2000);
    for (uint32_t i = 0; i < 500; i++)
        assert_int_equal(index_add(&index, i, i), 0);
    assert_int_equal(index.slot_count, slot_count);
    index_free(&index);
}

static uint64_t well_spread(uint64_t value)
{
    return hash_bytes(&value, sizeof value, 0);
}

static uint64_t all_the_same(uint64_t value)
{
    (void)value;
    return 0xffffffffffffffffull; /* starts in the last slot, and wraps around */
}

static uint64_t equal_below(uint64_t value)
{
    return value << 32 | 17; /* differs only in the half that is not kept */
}

static void test_finds_all_of_many(void **state)
{
    (void)state;
    fill_and_check(well_spread, MANY);
}

static void test_equal_hashes_are_told_apart_by_the_items(void **state)
{
    (void)state;
    fill_and_check(all_the_same, 2000);
    fill_and_check(equal_below, 2000);
}

static void test_empty_index_finds_nothing(void **state)
{
    (void)state;
    struct index index = {0};
    uint64_t key = 0;
    assert_int_equal(index_find(&index, 0, is_same, &key, &key), INDEX_NONE);
    index_free(&index);
}

static void test_item_and_hash_zero_are_no_free_slot(void **state)
{
    (void)state;
    struct index index = {0};
    uint64_t items[1] = {42}, key = 42;
    assert_int_equal(index_add(&index, 0, 0), 0);
    assert_int_equal(index_find(&index, 0, is_same, items, &key), 0);
    index_free(&index);
}

static void test_hash_depends_on_bytes_length_and_seed(void **state)
{
    (void)state;
    static const char text[] = "0123456789abcdef0123456789abcde";
    uint64_t whole = hash_bytes(text, sizeof text, 0);
    assert_true(whole == hash_bytes(text, sizeof text, 0));
    assert_true(whole != hash_bytes(text, sizeof text, 1));
    for (size_t length = 0; length < sizeof text; length++)
        assert_true(whole != hash_bytes(text, length, 0));
    char changed[sizeof text];
    for (size_t i = 0; i < sizeof text; i++) {
        memcpy(changed, text, sizeof text);
        changed[i] ^= 1;
        assert_true(whole != hash_bytes(changed, sizeof changed, 0));
    }
    /* Trailing zero bytes count too: they differ from the padding of the last word. */
    assert_true(hash_bytes("\0\0\0", 3, 0) != hash_bytes("\0\0", 2, 0));
    assert_true(hash_bytes("", 0, 0) != hash_bytes("\0", 1, 0));
}

static uint64_t inverse_of_mix(uint64_t h)
{
    h ^= h >> 33;
    h *= 0x9cb4b2f8129337dbull; /* the multipliers' inverses modulo 2^64 */
    h ^= h >> 33;
    h *= 0x4f74430c22a54005ull;
    return h ^ h >> 33;
}

/* A key of 8 bytes whose fixed hash ends in 32 equal bits for all numbers. */
static uint64_t colliding(uint64_t number)
{
    uint64_t begin = sizeof number * 0x9e3779b97f4a7c15ull;
    return inverse_of_mix(inverse_of_mix(number << 32 | 17)) ^ begin;
}

static void test_nobody_can_choose_keys_with_equal_hashes(void **state)
{
    (void)state;
    uint32_t equal = 0;
    uint64_t first = colliding(0), first_hash = hash_bytes(&first, sizeof first, 0);
    for (uint64_t i = 1; i < 1000; i++) {
        uint64_t key = colliding(i);
        assert_int_equal((uint32_t)hash_bytes_fixed(&key, sizeof key, 0), 17);
        equal += (uint32_t)hash_bytes(&key, sizeof key, 0) == (uint32_t)first_hash;
    }
    assert_in_range(equal, 0, 5);
}

static void test_hash_spreads_over_the_slots(void **state)
{
    (void)state;
    /* 4096 random throws into as many slots are expected to leave 1507 empty (4096 / e). */
    bool used[4096] = {false};
    size_t empty = 0;
    for (uint64_t i = 0; i < 4096; i++)
        used[well_spread(i << 12) % 4096] = true;
    for (size_t i = 0; i < 4096; i++)
        empty += !used[i];
    assert_in_range(empty, 1350, 1650);
}

static void test_items_are_interned(void **state)
{
    (void)state;
    struct row {
        uint32_t key[2];
        uint64_t count;
    } *rows = NULL;
    struct index index = {0};
    size_t count = 0, capacity = 0;
    for (uint32_t i = 0; i < 300; i++) {
        const struct row row = {{i % 100, 7}, i};
        uint32_t number;
        assert_int_equal(
            INDEX_INTERN(&index, sizeof row.key, &row, &rows, &count, &capacity, &number), 0);
        assert_int_equal(number, i % 100);
    }
    assert_int_equal(count, 100);
    /* The first of several equal items is kept. */
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(rows[i].count, i);
    index_free(&index);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_are_interned),
        cmocka_unit_test(test_items_can_be_removed),
        cmocka_unit_test(test_memory_of_items_that_go_is_given_back),
        cmocka_unit_test(test_finds_all_of_many),
        cmocka_unit_test(test_equal_hashes_are_told_apart_by_the_items),
        cmocka_unit_test(test_empty_index_finds_nothing),
        cmocka_unit_test(test_item_and_hash_zero_are_no_free_slot),
        cmocka_unit_test(test_hash_depends_on_bytes_length_and_seed),
        cmocka_unit_test(test_nobody_can_choose_keys_with_equal_hashes),
        cmocka_unit_test(test_hash_spreads_over_the_slots),
    };
    return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
