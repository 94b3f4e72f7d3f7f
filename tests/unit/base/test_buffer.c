#include "unit.h"
#include "base/buffer.h"

#include <errno.h>
#include <stdint.h>

static void test_what_is_written(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    buffer_puts(&buffer, "");
    assert_string_equal(buffer.bytes, "");
    buffer_puts(&buffer, "a");
    buffer_write(&buffer, "\0b", 2);
    buffer_print(&buffer, "%d %s", 42, "c");
    assert_int_equal(buffer.error, 0);
    assert_int_equal(buffer.length, 7);
    assert_memory_equal(buffer.bytes, "a\0b42 c", 8);
    buffer_free(&buffer);
    assert_null(buffer.bytes);
    assert_int_equal(buffer.length, 0);
}

static void test_much_is_written(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    for (unsigned i = 0; i < 10000; i++)
        buffer_print(&buffer, "%04u,", i);
    assert_int_equal(buffer.length, 50000);
    assert_memory_equal(buffer.bytes + 5 * 1234, "1234,", 5);
    assert_string_equal(buffer.bytes + 5 * 9999, "9999,");
    buffer_free(&buffer);
}

static void assert_quoted(const char *word, const char *expected)
{
    struct buffer buffer = {0};
    buffer_put_quoted(&buffer, word);
    assert_string_equal(buffer.bytes, expected);
    buffer_free(&buffer);
}

static void test_words_for_a_shell(void **state)
{
    (void)state;
    assert_quoted("/tmp/a-b_c.1,2:3=+@%", "/tmp/a-b_c.1,2:3=+@%");
    assert_quoted("", "''");
    assert_quoted("a b", "'a b'");
    assert_quoted("$HOME's", "'$HOME'\\''s'");
}

static void test_the_first_error_stays(void **state)
{
    (void)state;
    struct buffer buffer = {.error = -EIO};
    buffer_puts(&buffer, "a");
    buffer_print(&buffer, "%d", 1);
    assert_int_equal(buffer_reserve(&buffer, 1), -EIO);
    assert_int_equal(buffer.length, 0);
    buffer_free(&buffer);
    /* Too much even to try: the sanitizers abort a program that asks for so much. */
    assert_int_equal(buffer_reserve(&buffer, SIZE_MAX - 16), -ENOMEM);
    buffer_free(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written),
        cmocka_unit_test(test_much_is_written),
        cmocka_unit_test(test_words_for_a_shell),
        cmocka_unit_test(test_the_first_error_stays),
    };
    return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
