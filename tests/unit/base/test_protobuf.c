#include "unit.h"
#include "base/protobuf.h"

static void assert_bytes(struct buffer *message, const void *expected, size_t length)
{
    assert_int_equal(message->error, 0);
    assert_int_equal(message->length, length);
    if (length)
        assert_memory_equal(message->bytes, expected, length);
    buffer_free(message);
    assert_null(message->bytes);
    assert_int_equal(message->length, 0);
}

#define ASSERT_BYTES(message, literal) assert_bytes(message, literal, sizeof(literal) - 1)

static void test_varints(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        const char *bytes;
        size_t length;
    } rows[] = {
        {0, "\x00", 1},
        {1, "\x01", 1},
        {127, "\x7f", 1},
        {128, "\x80\x01", 2},
        {150, "\x96\x01", 2}, /* the example in the encoding's documentation */
        {300, "\xac\x02", 2},
        {16383, "\xff\x7f", 2},
        {16384, "\x80\x80\x01", 3},
        {UINT32_MAX, "\xff\xff\xff\xff\x0f", 5},
        {1ull << 32, "\x80\x80\x80\x80\x10", 5},
        {INT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9},
        {1ull << 63, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10},
        {UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buffer message = {0};
        protobuf_varint(&message, rows[i].value);
        assert_bytes(&message, rows[i].bytes, rows[i].length);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    struct buffer message = {0};
    protobuf_number(&message, 1, 150);
    protobuf_number(&message, 2, 0); /* the default is not written */
    protobuf_number(&message, 15, 1);
    protobuf_number(&message, 16, 2); /* its tag has two bytes */
    ASSERT_BYTES(&message, "\x08\x96\x01\x78\x01\x80\x01\x02");
}

static void test_strings_and_bytes(void **state)
{
    (void)state;
    struct buffer message = {0};
    protobuf_string(&message, 2, "testing");
    protobuf_string(&message, 6, "");
    protobuf_bytes(&message, 3, "a\0b", 3);
    protobuf_bytes(&message, 3, NULL, 0);
    ASSERT_BYTES(&message, "\x12\x07testing\x32\x00\x1a\x03"
                           "a\0b\x1a\x00");
}

static void test_string_whose_length_has_two_bytes(void **state)
{
    (void)state;
    char text[129], expected[3 + 128] = "\x0a\x80\x01";
    memset(text, 'x', 128);
    text[128] = '\0';
    memset(expected + 3, 'x', 128);
    struct buffer message = {0};
    protobuf_string(&message, 1, text);
    assert_bytes(&message, expected, sizeof expected);
}

static void test_packed(void **state)
{
    (void)state;
    struct buffer message = {0};
    /* The example in the encoding's documentation. */
    size_t begin = protobuf_begin(&message, 6);
    protobuf_varint(&message, 3);
    protobuf_varint(&message, 270);
    protobuf_varint(&message, 86942);
    protobuf_end(&message, begin);
    protobuf_number(&message, 1, 1);
    ASSERT_BYTES(&message, "\x32\x06\x03\x8e\x02\x9e\xa7\x05\x08\x01");
}

static void test_packed_zeros_are_written(void **state)
{
    (void)state;
    struct buffer message = {0};
    size_t begin = protobuf_begin(&message, 2);
    protobuf_varint(&message, 0);
    protobuf_varint(&message, 5);
    protobuf_end(&message, begin);
    ASSERT_BYTES(&message, "\x12\x02\x00\x05");
}

static void test_nested(void **state)
{
    (void)state;
    struct buffer message = {0};
    protobuf_number(&message, 1, 9);
    size_t outer = protobuf_begin(&message, 3);
    protobuf_number(&message, 1, 1);
    size_t inner = protobuf_begin(&message, 4);
    protobuf_number(&message, 1, 150);
    protobuf_end(&message, inner);
    protobuf_number(&message, 2, 2);
    protobuf_end(&message, outer);
    protobuf_number(&message, 5, 3);
    ASSERT_BYTES(&message, "\x08\x09\x1a\x09\x08\x01\x22\x03\x08\x96\x01\x10\x02\x28\x03");
}

static void test_empty_nested(void **state)
{
    (void)state;
    struct buffer message = {0};
    size_t begin = protobuf_begin(&message, 1);
    protobuf_end(&message, begin);
    ASSERT_BYTES(&message, "\x0a\x00");
}

/* The length may take more bytes than were reserved when the message began. */
static void test_nested_at_the_boundaries_of_the_length(void **state)
{
    (void)state;
    static const size_t lengths[] = {126, 127, 128, 129, 16382, 16383, 16384, 16385, 2097152};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t length = lengths[i];
        struct buffer message = {0}, expected = {0};
        protobuf_varint(&message, 7);
        size_t outer = protobuf_begin(&message, 1);
        size_t inner = protobuf_begin(&message, 2);
        for (size_t j = 0; j < length; j++)
            protobuf_varint(&message, j % 128);
        protobuf_end(&message, inner);
        protobuf_end(&message, outer);
        protobuf_varint(&message, 8);

        size_t length_bytes = length < 128 ? 1 : length < 16384 ? 2 : length < 2097152 ? 3 : 4;
        protobuf_varint(&expected, 7);
        protobuf_varint(&expected, 0x0a);
        protobuf_varint(&expected, 1 + length_bytes + length);
        protobuf_varint(&expected, 0x12);
        protobuf_varint(&expected, length);
        for (size_t j = 0; j < length; j++)
            protobuf_varint(&expected, j % 128);
        protobuf_varint(&expected, 8);

        assert_bytes(&message, expected.bytes, expected.length);
        buffer_free(&expected);
    }
}

static void test_fixed64(void **state)
{
    (void)state;
    struct buffer message = {0};
    protobuf_fixed64(&message, 3, 0);
    assert_int_equal(message.length, 0);
    protobuf_fixed64(&message, 3, 0x1122334455667788);
    assert_bytes(&message, "\x19\x88\x77\x66\x55\x44\x33\x22\x11", 9);
}

static void test_an_error_stays(void **state)
{
    (void)state;
    struct buffer message = {0};
    protobuf_number(&message, 1, 1);
    size_t begin = protobuf_begin(&message, 2);
    size_t length = message.length;
    message.error = -12;
    protobuf_number(&message, 1, 1);
    protobuf_string(&message, 1, "text");
    protobuf_end(&message, begin);
    assert_int_equal(message.error, -12);
    assert_int_equal(message.length, length);
    buffer_free(&message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varints),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_strings_and_bytes),
        cmocka_unit_test(test_string_whose_length_has_two_bytes),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_packed_zeros_are_written),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_empty_nested),
        cmocka_unit_test(test_nested_at_the_boundaries_of_the_length),
        cmocka_unit_test(test_fixed64),
        cmocka_unit_test(test_an_error_stays),
    };
    return cmocka_run_group_tests_name("protobuf", tests, NULL, NULL);
}
