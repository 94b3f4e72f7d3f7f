/* DWARF's numbers, read from bytes that may end anywhere. */
#include "unit.h"
#include "base/bytes.h"

#define BYTES(...)                                                                                 \
    (const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[])                                        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static struct bytes bytes_of(const uint8_t *bytes, size_t count)
{
    return (struct bytes){bytes, bytes + count, false};
}

static uint64_t uleb_of(const uint8_t *bytes, size_t count)
{
    struct bytes from = bytes_of(bytes, count);
    uint64_t value = bytes_uleb(&from);
    assert_false(from.failed);
    assert_int_equal(bytes_left(&from), 0);
    return value;
}

static int64_t sleb_of(const uint8_t *bytes, size_t count)
{
    struct bytes from = bytes_of(bytes, count);
    int64_t value = bytes_sleb(&from);
    assert_false(from.failed);
    assert_int_equal(bytes_left(&from), 0);
    return value;
}

static void test_plain_numbers(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x01, 0x02, 0x83, 0x04, 0x05, 0x06, 0x07, 0x88, 0x09};
    static const uint64_t values[9] = {
        [1] = 0x01, [2] = 0x0201, [4] = 0x04830201, [8] = 0x8807060504830201};
    for (unsigned size = 1; size <= 8; size *= 2) {
        struct bytes from = bytes_of(bytes, sizeof bytes);
        assert_true(bytes_unsigned(&from, size) == values[size]);
        assert_ptr_equal(from.at, bytes + size);
        assert_false(from.failed);
    }
}

static void test_signed_numbers(void **state)
{
    (void)state;
    static const uint8_t negative[] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t positive[] = {0x7e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
    static const uint8_t lowest[] = {0x00, 0x00, 0x00, 0x80};
    for (unsigned size = 1; size <= 8; size *= 2) {
        struct bytes from = bytes_of(negative, sizeof negative);
        assert_true(bytes_signed(&from, size) == -2);
        from = bytes_of(positive, sizeof positive);
        assert_true(bytes_signed(&from, size) == 126);
    }
    struct bytes from = bytes_of(lowest, sizeof lowest);
    assert_true(bytes_signed(&from, 4) == INT32_MIN);
}

/* A number that is cut off reads as 0, and none of its bytes are consumed. */
static void test_numbers_behind_the_end(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    for (unsigned size = 1; size <= 8; size *= 2) {
        for (size_t count = 0; count < size; count++) {
            struct bytes from = bytes_of(bytes, count);
            assert_true(bytes_unsigned(&from, size) == 0);
            assert_true(from.failed);
            assert_int_equal(bytes_left(&from), count);
            from = bytes_of(bytes, count);
            assert_true(bytes_signed(&from, size) == 0);
            assert_true(from.failed);
        }
    }
}

/* A damaged file may give any size. */
static void test_numbers_of_more_than_64_bits(void **state)
{
    (void)state;
    static const uint8_t bytes[256] = {0xff};
    for (unsigned size = 9; size < sizeof bytes; size++) {
        struct bytes from = bytes_of(bytes, sizeof bytes);
        assert_true(bytes_unsigned(&from, size) == 0);
        assert_true(from.failed);
        assert_ptr_equal(from.at, bytes);
    }
}

static void test_failure_stays(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2};
    struct bytes from = bytes_of(bytes, sizeof bytes);
    bytes_unsigned(&from, 4);
    assert_true(from.failed);
    assert_int_equal(bytes_unsigned(&from, 1), 1); /* this byte can be read, and yet: */
    assert_true(from.failed);
}

static void test_skip(void **state)
{
    (void)state;
    static const uint8_t bytes[8] = {0};
    static const uint64_t too_many[] = {9, UINT32_MAX, UINT64_MAX - 7, UINT64_MAX};
    struct bytes from = bytes_of(bytes, sizeof bytes);
    bytes_skip(&from, 0);
    bytes_skip(&from, 5);
    assert_int_equal(bytes_left(&from), 3);
    bytes_skip(&from, 3);
    assert_int_equal(bytes_left(&from), 0);
    assert_false(from.failed);
    for (size_t i = 0; i < sizeof too_many / sizeof *too_many; i++) {
        from = bytes_of(bytes, sizeof bytes);
        bytes_skip(&from, too_many[i]);
        assert_true(from.failed);
        assert_ptr_equal(from.at, from.end);
    }
}

/* The examples of DWARF 5, table 7.7, and the largest values. */
static void test_unsigned_leb(void **state)
{
    (void)state;
    assert_true(uleb_of(BYTES(0)) == 0);
    assert_true(uleb_of(BYTES(2)) == 2);
    assert_true(uleb_of(BYTES(127)) == 127);
    assert_true(uleb_of(BYTES(0 + 0x80, 1)) == 128);
    assert_true(uleb_of(BYTES(1 + 0x80, 1)) == 129);
    assert_true(uleb_of(BYTES(57 + 0x80, 100)) == 12857);
    assert_true(uleb_of(BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)) ==
                UINT64_MAX);
    assert_true(uleb_of(BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01)) ==
                (uint64_t)1 << 63);
}

/* The examples of table 7.8, and the extreme values. */
static void test_signed_leb(void **state)
{
    (void)state;
    assert_true(sleb_of(BYTES(0)) == 0);
    assert_true(sleb_of(BYTES(2)) == 2);
    assert_true(sleb_of(BYTES(0x7e)) == -2);
    assert_true(sleb_of(BYTES(0x3f)) == 63);
    assert_true(sleb_of(BYTES(0x40)) == -64);
    assert_true(sleb_of(BYTES(127 + 0x80, 0)) == 127);
    assert_true(sleb_of(BYTES(1 + 0x80, 0x7f)) == -127);
    assert_true(sleb_of(BYTES(0 + 0x80, 1)) == 128);
    assert_true(sleb_of(BYTES(0 + 0x80, 0x7f)) == -128);
    assert_true(sleb_of(BYTES(1 + 0x80, 1)) == 129);
    assert_true(sleb_of(BYTES(0x7f + 0x80, 0x7e)) == -129);
    assert_true(sleb_of(BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00)) ==
                INT64_MAX);
    assert_true(sleb_of(BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f)) ==
                INT64_MIN);
}

/* Longer than necessary, as assemblers write numbers whose length they fix up later: the value is
 * the same, and all bytes are consumed. */
static void test_overlong_leb(void **state)
{
    (void)state;
    assert_true(uleb_of(BYTES(0x85, 0x80, 0x80, 0x00)) == 5);
    assert_true(sleb_of(BYTES(0x85, 0x80, 0x80, 0x00)) == 5);
    assert_true(sleb_of(BYTES(0xfb, 0xff, 0xff, 0x7f)) == -5);
    assert_true(uleb_of(BYTES(0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00)) == 5);
}

static void test_leb_of_more_than_ten_bytes(void **state)
{
    (void)state;
    uint8_t bytes[40];
    for (size_t count = 11; count < sizeof bytes; count++) {
        memset(bytes, 0x80, sizeof bytes);
        bytes[count - 1] = 5;
        struct bytes from = bytes_of(bytes, sizeof bytes);
        bytes_uleb(&from);
        assert_true(from.failed);
        from = bytes_of(bytes, sizeof bytes);
        bytes_sleb(&from);
        assert_true(from.failed);
    }
}

static void test_leb_without_an_end(void **state)
{
    (void)state;
    uint8_t bytes[20];
    memset(bytes, 0xff, sizeof bytes);
    for (size_t count = 0; count <= sizeof bytes; count++) {
        struct bytes from = bytes_of(bytes, count);
        bytes_uleb(&from);
        assert_true(from.failed);
        assert_int_equal(bytes_left(&from), 0);
        from = bytes_of(bytes, count);
        bytes_sleb(&from);
        assert_true(from.failed);
    }
    struct bytes nothing = bytes_of(bytes, 0);
    assert_int_equal(bytes_uleb(&nothing), 0);
    assert_int_equal(bytes_sleb(&nothing), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_numbers),
        cmocka_unit_test(test_signed_numbers),
        cmocka_unit_test(test_numbers_behind_the_end),
        cmocka_unit_test(test_numbers_of_more_than_64_bits),
        cmocka_unit_test(test_failure_stays),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_unsigned_leb),
        cmocka_unit_test(test_signed_leb),
        cmocka_unit_test(test_overlong_leb),
        cmocka_unit_test(test_leb_of_more_than_ten_bytes),
        cmocka_unit_test(test_leb_without_an_end),
    };
    return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
