#include "unit.h"
#include "base/name.h"
#include "base/utf8.h"

static void assert_name(const char *name, const char *expected)
{
    struct buffer buffer = {0};
    buffer_puts(&buffer, "<");
    name_append(&buffer, name);
    buffer_puts(&buffer, ">");
    assert_int_equal(buffer.error, 0);
    assert_int_equal(buffer.length, strlen(expected) + 2);
    assert_int_equal(strlen(buffer.bytes), buffer.length);
    assert_int_equal(buffer.bytes[0], '<');
    assert_int_equal(buffer.bytes[buffer.length - 1], '>');
    buffer.bytes[buffer.length - 1] = '\0';
    assert_string_equal(buffer.bytes + 1, expected);
    buffer_free(&buffer);
}

static void test_printable_names_stay(void **state)
{
    (void)state;
    assert_name("", "");
    assert_name("main", "main");
    assert_name("std::vector<int, std::allocator<int> >::push_back",
                "std::vector<int, std::allocator<int> >::push_back");
    assert_name(" !\"#$%&'()*+,-./;<=>?@[\\]^_`{|}~", " !\"#$%&'()*+,-./;<=>?@[\\]^_`{|}~");
}

static void test_control_characters_are_escaped(void **state)
{
    (void)state;
    assert_name("a\nb", "a\\x0ab");
    assert_name("a\r\tb", "a\\x0d\\x09b");
    assert_name("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07");
    assert_name("\x01\x1f\x7f", "\\x01\\x1f\\x7f");
    /* U+0085, next line, and U+009B, which some terminals take for ESC [. */
    assert_name("\xc2\x85", "\\xc2\\x85");
    assert_name("\xc2\x9b"
                "31m",
                "\\xc2\\x9b"
                "31m");
}

static void test_utf8_stays(void **state)
{
    (void)state;
    assert_name("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
    assert_name("\xc2\xa0", "\xc2\xa0");                 /* U+00A0: the first after the controls */
    assert_name("\xe2\x82\xac", "\xe2\x82\xac");         /* U+20AC */
    assert_name("\xe0\xa0\x80", "\xe0\xa0\x80");         /* U+0800: the first of three bytes */
    assert_name("\xed\x9f\xbf", "\xed\x9f\xbf");         /* U+D7FF: the last before surrogates */
    assert_name("\xee\x80\x80", "\xee\x80\x80");         /* U+E000: the first after them */
    assert_name("\xf0\x9f\x90\xa7", "\xf0\x9f\x90\xa7"); /* U+1F427 */
    assert_name("\xf0\x90\x80\x80", "\xf0\x90\x80\x80"); /* U+10000: the first of four bytes */
    assert_name("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"); /* U+10FFFF: the last */
}

static void test_what_is_no_utf8_is_escaped(void **state)
{
    (void)state;
    assert_name("\x80", "\\x80");                            /* not a leading byte */
    assert_name("\xff\xfe", "\\xff\\xfe");                   /* never in UTF-8 */
    assert_name("\xc0\xaf", "\\xc0\\xaf");                   /* overlong '/' */
    assert_name("\xc1\xbf", "\\xc1\\xbf");                   /* overlong U+007F */
    assert_name("\xe0\x9f\xbf", "\\xe0\\x9f\\xbf");          /* overlong U+07FF */
    assert_name("\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf"); /* overlong U+FFFF */
    assert_name("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* U+D800, a surrogate */
    assert_name("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* U+110000 */
    assert_name("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"); /* far beyond U+10FFFF */
    assert_name("\xc3(", "\\xc3(");                          /* no continuation byte */
    assert_name("a\xe2\x82"
                "b",
                "a\\xe2\\x82"
                "b");
}

static void test_a_sequence_cut_off_by_the_end(void **state)
{
    (void)state;
    /* Each in memory of its own, so that a sanitizer detects reads beyond the NUL. */
    static const char *const names[] = {"\xc3", "\xe2\x82", "\xf0\x9f\x90", "\xf0"};
    static const char *const expected[] = {"\\xc3", "\\xe2\\x82", "\\xf0\\x9f\\x90", "\\xf0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *name = strdup(names[i]);
        assert_non_null(name);
        assert_name(name, expected[i]);
        free(name);
    }
}

static void test_appending_grows_and_ends_with_nul(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    for (size_t i = 0; i < 10000; i++) {
        buffer_puts(&buffer, "abc");
        assert_int_equal(buffer.length, 3 * (i + 1));
        assert_int_equal(buffer.bytes[buffer.length], '\0');
    }
    for (size_t i = 0; i < buffer.length; i++)
        assert_int_equal(buffer.bytes[i], "abc"[i % 3]);
    buffer_free(&buffer);
    assert_null(buffer.bytes);
    assert_int_equal(buffer.length, 0);
}

static void test_appending_bytes_takes_no_more_than_asked(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    buffer_write(&buffer, "abcdef", 2);
    assert_string_equal(buffer.bytes, "ab");
    buffer_write(&buffer, "xyz", 0);
    assert_string_equal(buffer.bytes, "ab");
    buffer_puts(&buffer, "");
    assert_int_equal(buffer.length, 2);
    buffer_free(&buffer);
}

static void test_nothing_is_appended_after_an_error(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    buffer_puts(&buffer, "ab");
    buffer.error = -12;
    buffer_puts(&buffer, "cd");
    name_append(&buffer, "e\nf");
    assert_string_equal(buffer.bytes, "ab");
    assert_int_equal(buffer.error, -12);
    buffer_free(&buffer);
}

static void assert_short(const char *name, size_t columns, const char *expected)
{
    struct buffer buffer = {0};
    buffer_puts(&buffer, "<");
    name_append_short(&buffer, name, columns);
    assert_int_equal(buffer.error, 0);
    assert_string_equal(buffer.bytes + 1, expected);
    buffer_free(&buffer);
}

/* A character counts as one column, however many bytes it has; an escaped byte counts as four. */
static void test_long_names_lose_their_middle(void **state)
{
    (void)state;
    assert_short("", 8, "");
    assert_short("abcdefgh", 8, "abcdefgh");
    assert_short("abcdefghi", 8, "abc...hi");
    assert_short("abcdefghi", 9, "abcdefghi");
    assert_short("abcdefghijklmnopqrstuvwxyz", 11, "abcd...wxyz");
    assert_short("\xc3\xa4\xc3\xb6\xc3\xbc\xe2\x82\xac\xc3\xa4\xc3\xb6\xc3\xbc\xe2\x82\xac\xc3\x9f",
                 8, "\xc3\xa4\xc3\xb6\xc3\xbc...\xe2\x82\xac\xc3\x9f");
    assert_short("ab\ncd", 8, "ab\\x0acd");
    assert_short("ab\ncde", 8, "ab\\...de");
}

static void test_printing(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    buffer_print(&buffer, "%d-", 7);
    buffer_print(&buffer, "%5s|", "ab");
    assert_string_equal(buffer.bytes, "7-   ab|");
    assert_int_equal(utf8_columns(buffer.bytes, buffer.length), 8);
    buffer_free(&buffer);
}

int main(void)
{

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printable_names_stay),
        cmocka_unit_test(test_control_characters_are_escaped),
        cmocka_unit_test(test_utf8_stays),
        cmocka_unit_test(test_what_is_no_utf8_is_escaped),
        cmocka_unit_test(test_a_sequence_cut_off_by_the_end),
        cmocka_unit_test(test_appending_grows_and_ends_with_nul),
        cmocka_unit_test(test_appending_bytes_takes_no_more_than_asked),
        cmocka_unit_test(test_nothing_is_appended_after_an_error),
        cmocka_unit_test(test_long_names_lose_their_middle),
        cmocka_unit_test(test_printing),
    };
    return cmocka_run_group_tests_name("name", tests, NULL, NULL);
}
