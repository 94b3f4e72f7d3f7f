/* Finding the words before a lock that may lead to its object's class. */
#include "unit.h"
#include "wait/lock.h"

#define LOCK 0x10800u
#define POINTER 0x7000u

struct before {
    struct call_target target;
    struct call_memory memory;
};

static struct before before_lock(uint64_t futex)
{
    struct before before = {.target = {.kind = CALL_FUTEX, .address = futex}};
    struct memory_range ranges[CALL_RANGES_MAX];
    unsigned count = call_ranges(&before.target, &before.memory, ranges);
    for (unsigned i = 0; i < count; i++)
        ranges[i].got = ranges[i].bytes;
    call_note_read(&before.memory, ranges, count);
    return before;
}

/* Puts a word `distance` bytes before LOCK. */
static void put(struct before *before, uint64_t distance, uint64_t word)
{
    uint64_t at = before->target.address - (LOCK - distance);
    assert_true(at >= sizeof word && at <= FUTEX_WORDS_BEFORE * sizeof(uint32_t));
    memcpy((char *)&before->memory.words[FUTEX_WORDS_BEFORE] - at, &word, sizeof word);
}

/* Finds the candidates for a lock of glibc or of another library. */
static size_t find(const struct before *before, bool is_glibc, uint64_t pointers[])
{
    const struct lock lock = {.kind = RESOURCE_MUTEX, .address = LOCK};
    const struct lock_site site = {.kind = RESOURCE_MUTEX, .is_glibc = is_glibc};
    return object_pointers(&lock, &site, &before->target, &before->memory, pointers);
}

static void assert_found(const struct before *before, uint64_t pointer)
{
    uint64_t pointers[OBJECT_POINTERS_MAX];
    size_t count = find(before, true, pointers);
    assert_int_equal(count, pointer ? 1 : 0);
    if (pointer)
        assert_int_equal(pointers[0], pointer);
}

static void test_near_a_lock(void **state)
{
    (void)state;
    uint64_t pointers[OBJECT_POINTERS_MAX];
    for (uint64_t distance = 8; distance <= 32; distance += 8) {
        struct before before = before_lock(LOCK);
        put(&before, distance, POINTER);
        /* The word before may belong to another allocation. */
        assert_found(&before, distance <= 24 ? POINTER : 0);
        /* A lock of another library may be smaller than glibc's. */
        assert_int_equal(find(&before, false, pointers), 0);
        put(&before, distance, POINTER + 4);
        assert_found(&before, 0);
    }
    struct before both = before_lock(LOCK);
    put(&both, 8, POINTER);
    put(&both, 24, POINTER + 8);
    assert_int_equal(find(&both, true, pointers), 2);
    assert_int_equal(pointers[0], POINTER);
    assert_int_equal(pointers[1], POINTER + 8);
}

/* At the start of the allocation that contains the lock. */
static void test_farther_from_a_lock(void **state)
{
    (void)state;
    uint64_t pointers[OBJECT_POINTERS_MAX];
    for (uint64_t distance = 32; distance <= 128; distance += 16) {
        struct before before = before_lock(LOCK);
        put(&before, distance, POINTER);
        put(&before, distance + 8, distance + 48 + 1);
        assert_found(&before, POINTER);
        assert_int_equal(find(&before, false, pointers), 1);
        put(&before, distance + 8, 0x1000 | 5);
        assert_found(&before, POINTER);
        /* The lock is in the next allocation. */
        put(&before, distance + 8, distance + 1);
        assert_found(&before, 0);
        /* Not a size, and a size that is a pointer. */
        put(&before, distance + 8, distance + 48 + 8);
        assert_found(&before, 0);
        put(&before, distance + 8, 0x7f0000001010);
        assert_found(&before, 0);
        put(&before, distance + 8, 0);
        assert_found(&before, 0);
    }
    /* No allocation begins there. */
    struct before odd = before_lock(LOCK);
    put(&odd, 40, POINTER);
    put(&odd, 48, 0x101);
    assert_found(&odd, 0);
}

/* After the reference counts that std::make_shared puts before an object. */
static void test_a_shared_object(void **state)
{
    (void)state;
    uint64_t pointers[OBJECT_POINTERS_MAX];
    struct before before = before_lock(LOCK);
    put(&before, 64, POINTER);
    put(&before, 72, 0x100000001);
    put(&before, 80, POINTER + 8);
    put(&before, 88, 0x101);
    assert_int_equal(find(&before, true, pointers), 2);
    assert_int_equal(pointers[0], POINTER);
    assert_int_equal(pointers[1], POINTER + 8);
}

static void test_what_was_not_read(void **state)
{
    (void)state;
    struct before before = before_lock(LOCK);
    put(&before, 8, POINTER);
    before.memory.got[1] = 0;
    assert_found(&before, 0);
    /* Only what is on the page. */
    before = before_lock(LOCK);
    put(&before, 24, POINTER);
    before.target.address += 0x1000 - 0x800 + 16;
    before.memory.got[1] = 16;
    uint64_t pointers[OBJECT_POINTERS_MAX];
    const struct lock lock = {.kind = RESOURCE_MUTEX, .address = before.target.address};
    const struct lock_site site = {.kind = RESOURCE_MUTEX, .is_glibc = true};
    assert_int_equal(object_pointers(&lock, &site, &before.target, &before.memory, pointers), 0);
    /* A lock whose futex is not its first word. */
    before = before_lock(LOCK + 12);
    put(&before, 8, POINTER);
    assert_found(&before, POINTER);
    /* A lock that is far away. */
    const struct lock far = {.kind = RESOURCE_MUTEX, .address = 8};
    assert_int_equal(object_pointers(&far, &site, &before.target, &before.memory, pointers), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_a_lock),
        cmocka_unit_test(test_farther_from_a_lock),
        cmocka_unit_test(test_a_shared_object),
        cmocka_unit_test(test_what_was_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
