#include "unit.h"
#include "cli/suggest.h"

#include <string.h>

static void test_distances(void **state)
{
    (void)state;
    assert_int_equal(edit_distance("", ""), 0);
    assert_int_equal(edit_distance("", "top"), 3);
    assert_int_equal(edit_distance("top", ""), 3);
    assert_int_equal(edit_distance("attach", "attach"), 0);
    assert_int_equal(edit_distance("atach", "attach"), 1);
    assert_int_equal(edit_distance("attacch", "attach"), 1);
    assert_int_equal(edit_distance("ettach", "attach"), 1);
    assert_int_equal(edit_distance("attahc", "attach"), 1); /* two letters swapped */
    assert_int_equal(edit_distance("kitten", "sitting"), 3);
    /* A swapped letter is not changed again. */
    assert_int_equal(edit_distance("ca", "abc"), 3);
}

static void test_long_words_are_cut(void **state)
{
    char word[200];
    (void)state;
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_int_equal(edit_distance(word, ""), 63);
    assert_int_equal(edit_distance(word, word), 0);
}

static void test_the_nearest_is_suggested_if_it_is_near(void **state)
{
    static const char *const words[] = {"dump", "diff", "top", "attach"};
    (void)state;
    assert_string_equal(suggest("dumb", words, 4), "dump");
    assert_string_equal(suggest("atahc", words, 4), "attach");
    assert_string_equal(suggest("to", words, 4), "top");
    assert_null(suggest("xyz", words, 4));
    assert_null(suggest("nginx", words, 4));
    assert_null(suggest("", words, 4));
    assert_null(suggest("dump", words, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_long_words_are_cut),
        cmocka_unit_test(test_the_nearest_is_suggested_if_it_is_near),
    };
    return cmocka_run_group_tests_name("suggest", tests, NULL, NULL);
}
