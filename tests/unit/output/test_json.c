#include "unit.h"
#include "output/json.h"

static void assert_string(const char *name, const char *expected)
{
    struct buffer buffer = {0};
    buffer_puts(&buffer, "[");
    json_append_string(&buffer, name);
    buffer_puts(&buffer, "]");
    assert_int_equal(buffer.error, 0);
    assert_string_equal(buffer.bytes, expected);
    buffer_free(&buffer);
}

static void test_names_are_quoted(void **state)
{
    (void)state;
    assert_string("", "[\"\"]");
    assert_string("main", "[\"main\"]");
    assert_string("gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\xa7",
                  "[\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\xa7\"]");
}

static void test_quotes_and_backslashes_are_escaped(void **state)
{
    (void)state;
    assert_string("operator\"\"_km", "[\"operator\\\"\\\"_km\"]");
    assert_string("a\\", "[\"a\\\\\"]");
    assert_string("\\\"", "[\"\\\\\\\"\"]");
}

static void test_no_name_ends_a_script(void **state)
{
    (void)state;
    assert_string("</script><img onerror=x>", "[\"\\u003c/script>\\u003cimg onerror=x>\"]");
    assert_string("std::vector<int>", "[\"std::vector\\u003cint>\"]");
}

/* As with name_append: a reader of the JSON shows a backslash, an x, and the byte. */
static void test_what_is_not_printable_is_shown(void **state)
{
    (void)state;
    assert_string("a\nb", "[\"a\\\\x0ab\"]");
    assert_string("\x1b[2J\x7f", "[\"\\\\x1b[2J\\\\x7f\"]");
    assert_string("\xff(", "[\"\\\\xff(\"]");
    assert_string("a\xe2\x82", "[\"a\\\\xe2\\\\x82\"]");
}

static void test_an_error_stays(void **state)
{
    (void)state;
    struct buffer buffer = {0};
    buffer_puts(&buffer, "a");
    buffer.error = -12;
    json_append_string(&buffer, "b");
    assert_string_equal(buffer.bytes, "a");
    assert_int_equal(buffer.error, -12);
    buffer_free(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_quoted),
        cmocka_unit_test(test_quotes_and_backslashes_are_escaped),
        cmocka_unit_test(test_no_name_ends_a_script),
        cmocka_unit_test(test_what_is_not_printable_is_shown),
        cmocka_unit_test(test_an_error_stays),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
