/* Reading a server's answer, which may be arbitrary bytes. */
#include "unit.h"
#include "cli/push/partial.h"

static struct partial_success partial;

/* Reads a copy that ends where its memory ends. */
static void read_answer(const void *bytes, size_t length)
{
    static char message[128];
    char *copy = malloc(length + !length);
    memcpy(copy, bytes, length);
    partial_success_read(copy, length, &partial);
    assert_true(partial.message_bytes < sizeof message);
    if (partial.message_bytes) {
        memcpy(message, partial.message, partial.message_bytes);
        partial.message = message;
    }
    free(copy);
}

#define READ(text) read_answer(text, sizeof text - 1)

static void assert_message(const char *expected)
{
    assert_int_equal(partial.message_bytes, strlen(expected));
    assert_memory_equal(partial.message, expected, strlen(expected));
}

static void test_what_a_server_says(void **state)
{
    (void)state;
    READ("");
    assert_int_equal(partial.rejected, 0);
    assert_int_equal(partial.message_bytes, 0);
    READ("\x0a\x08\x08\xac\x02\x12\x03old");
    assert_int_equal(partial.rejected, 300);
    assert_message("old");
    READ("\x0a\x00");
    assert_int_equal(partial.rejected, 0);
    assert_int_equal(partial.message_bytes, 0);
}

static void test_unknown_fields_are_passed_over(void **state)
{
    (void)state;
    READ("\x10\x05\x19"
         "12345678\x25"
         "1234\x32\x02xx\x0a\x0c\x1a\x01x\x10\x07\x08\x03\x12\x03why\x10\x01");
    assert_int_equal(partial.rejected, 3);
    assert_message("why");
}

static void test_what_is_no_such_answer(void **state)
{
    static const char whole[] = "\x0a\x08\x08\xac\x02\x12\x03old";
    (void)state;
    for (size_t length = 0; length + 1 < sizeof whole - 1; length++) {
        read_answer(whole, length);
        assert_int_equal(partial.rejected, 0);
        assert_int_equal(partial.message_bytes, 0);
    }
    READ("{\"partialSuccess\":{}}");
    assert_int_equal(partial.rejected, 0);
    READ("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    assert_int_equal(partial.rejected, 0);
    READ("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    assert_int_equal(partial.rejected, 0);
    /* A negative count. */
    READ("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    assert_int_equal(partial.rejected, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_server_says),
        cmocka_unit_test(test_unknown_fields_are_passed_over),
        cmocka_unit_test(test_what_is_no_such_answer),
    };
    return cmocka_run_group_tests_name("partial", tests, NULL, NULL);
}
