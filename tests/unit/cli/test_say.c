/* Messages on stderr. */
#include "cli/say.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static char *said;
static size_t said_bytes;
static FILE *real_stderr;

static int set_up(void **state)
{
    (void)state;
    real_stderr = stderr;
    stderr = open_memstream(&said, &said_bytes);
    return stderr ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fclose(stderr);
    stderr = real_stderr;
    free(said);
    return 0;
}

static void assert_said(const char *expected)
{
    fflush(stderr);
    assert_string_equal(said, expected);
    rewind(stderr);
}

static void test_control_characters_are_escaped(void **state)
{
    (void)state;
    assert_false(say("%s", "a\x1b[2Jb\n\x7f\xc2\x9b \xc3\xa9"));
    assert_said("fgprof-c: a\\x1b[2Jb\\x0a\\x7f\\xc2\\x9b \xc3\xa9\n");
}

static void test_what_is_no_utf_8_is_escaped(void **state)
{
    (void)state;
    say("%s", "\x9b"
              "2J\xff \xe2\x82\xac \xe2\x82");
    assert_said("fgprof-c: \\x9b2J\\xff \xe2\x82\xac \\xe2\\x82\n");
}

static void test_once(void **state)
{
    bool was_said = false;
    (void)state;
    say_once(&was_said, "%d", 1);
    say_once(&was_said, "%d", 2);
    say_more("%d", 3);
    assert_said("fgprof-c: 1 (reported once)\n  3\n");
}

static void test_what_is_too_long_is_cut(void **state)
{
    static char text[10001];
    (void)state;
    memset(text, '\a', sizeof text - 1);
    say("%s", text);
    fflush(stderr);
    assert_in_range(strlen(said), 4 * 8000, 4 * 9000);
    assert_string_equal(said + strlen(said) - 5, "\\x07\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_control_characters_are_escaped),
        TEST(test_what_is_no_utf_8_is_escaped),
        TEST(test_once),
        TEST(test_what_is_too_long_is_cut),
    };
    return cmocka_run_group_tests_name("say", tests, NULL, NULL);
}
