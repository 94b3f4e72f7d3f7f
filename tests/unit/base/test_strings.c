#include "unit.h"
#include "base/strings.h"

#include <errno.h>
#include <stdio.h>

static bool has_no_memory;

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

char *__wrap_strdup(const char *text)
{
    return has_no_memory ? NULL : __real_strdup(text);
}

static void test_without_memory_there_is_nothing_to_free(void **state)
{
    (void)state;
    struct strings strings;
    has_no_memory = true;
    int err = strings_init(&strings);
    has_no_memory = false;
    assert_int_equal(err, -ENOMEM);
    assert_null(strings.items);
}

static void test_number_0_is_the_empty_string(void **state)
{
    (void)state;
    struct strings strings;
    uint32_t id = 99;
    assert_int_equal(strings_init(&strings), 0);
    assert_int_equal(strings.count, 1);
    assert_int_equal(strings_intern(&strings, "", &id), 0);
    assert_int_equal(id, 0);
    assert_string_equal(strings_get(&strings, 0), "");
    strings_free(&strings);
}

static void test_many_strings_keep_their_ids(void **state)
{
    (void)state;
    struct strings strings;
    char text[32];
    uint32_t id;
    assert_int_equal(strings_init(&strings), 0);
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "function_%u", i);
        assert_int_equal(strings_intern(&strings, text, &id), 0);
        assert_int_equal(id, i + 1);
    }
    for (uint32_t i = 5000; i-- > 0;) {
        snprintf(text, sizeof text, "function_%u", i);
        assert_int_equal(strings_intern(&strings, text, &id), 0);
        assert_int_equal(id, i + 1);
        assert_string_equal(strings_get(&strings, id), text);
    }
    assert_int_equal(strings.count, 5001);
    strings_free(&strings);
}

static void test_text_is_copied(void **state)
{
    (void)state;
    struct strings strings;
    char text[] = "main";
    uint32_t first, second;
    assert_int_equal(strings_init(&strings), 0);
    assert_int_equal(strings_intern(&strings, text, &first), 0);
    text[0] = 'p';
    assert_string_equal(strings_get(&strings, first), "main");
    assert_int_equal(strings_intern(&strings, text, &second), 0);
    assert_int_not_equal(first, second);
    strings_free(&strings);
}

static void test_prefixes_are_different_strings(void **state)
{
    (void)state;
    struct strings strings;
    char text[65];
    uint32_t id;
    memset(text, 'a', sizeof text);
    assert_int_equal(strings_init(&strings), 0);
    for (uint32_t length = 64; length > 0; length--) {
        text[length] = '\0';
        assert_int_equal(strings_intern(&strings, text, &id), 0);
        assert_int_equal(id, 65 - length);
    }
    strings_free(&strings);
}

static void test_free_accepts_what_was_freed(void **state)
{
    (void)state;
    struct strings strings;
    assert_int_equal(strings_init(&strings), 0);
    strings_free(&strings);
    assert_int_equal(strings.count, 0);
    assert_null(strings.items);
    strings_free(&strings);
}

static void test_strings_can_go(void **state)
{
    (void)state;
    struct strings strings;
    struct renumber rows;
    char text[32];
    uint32_t id;
    assert_int_equal(strings_init(&strings), 0);
    size_t bytes = strings_bytes(&strings);
    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 5000; i++) {
            snprintf(text, sizeof text, "thread_%u", i);
            assert_int_equal(strings_intern(&strings, text, &id), 0);
        }
        assert_true(strings_bytes(&strings) > bytes + 5000);
        assert_int_equal(renumber_init(&rows, strings.count), 0);
        renumber_keep(&rows, 0);
        assert_true(strings_find(&strings, "thread_4000", &id));
        renumber_keep(&rows, id);
        renumber_assign(&rows);
        strings_keep(&strings, &rows);
        renumber_free(&rows);
        assert_int_equal(strings.count, 2);
        assert_in_range(strings_bytes(&strings), bytes, bytes + 100);
        assert_true(strings_find(&strings, "thread_4000", &id));
        assert_int_equal(id, 1);
        assert_false(strings_find(&strings, "thread_4001", &id));
        assert_int_equal(strings_intern(&strings, "", &id), 0);
        assert_int_equal(id, 0);
    }
    strings_free(&strings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_memory_there_is_nothing_to_free),
        cmocka_unit_test(test_number_0_is_the_empty_string),
        cmocka_unit_test(test_many_strings_keep_their_ids),
        cmocka_unit_test(test_text_is_copied),
        cmocka_unit_test(test_prefixes_are_different_strings),
        cmocka_unit_test(test_free_accepts_what_was_freed),
        cmocka_unit_test(test_strings_can_go),
    };
    return cmocka_run_group_tests_name("strings", tests, NULL, NULL);
}
