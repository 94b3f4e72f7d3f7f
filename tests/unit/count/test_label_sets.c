#include "unit.h"
#include "count/label_sets.h"

#include <stdio.h>
#include <stdlib.h>

static int set_up(void **state)
{
    *state = calloc(1, sizeof(struct label_sets));
    return !*state;
}

static int tear_down(void **state)
{
    label_sets_free(*state);
    free(*state);
    return 0;
}

static uint32_t add(struct label_sets *sets, const struct label_text *labels, size_t count,
                    bool *ret_is_limited)
{
    uint32_t set_plus_1;
    assert_int_equal(label_sets_add(sets, labels, count, &set_plus_1, ret_is_limited), 0);
    return set_plus_1;
}

static void test_equal_sets_are_one_in_any_order(void **state)
{
    struct label_sets *sets = *state;
    bool is_limited;
    const struct label_text labels[] = {{"b", "2"}, {"a", "1"}, {"c", "2"}};
    const struct label_text same[] = {{"c", "2"}, {"b", "2"}, {"a", "1"}};
    const struct label_text other[] = {{"a", "2"}, {"b", "1"}, {"c", "2"}};
    assert_int_equal(add(sets, labels, 0, &is_limited), 0);
    uint32_t set = add(sets, labels, 3, &is_limited);
    assert_int_equal(set, 1);
    assert_int_equal(add(sets, same, 3, &is_limited), set);
    assert_int_equal(add(sets, other, 3, &is_limited), 2);
    assert_int_equal(add(sets, labels, 2, &is_limited), 3);
    assert_false(is_limited);
    assert_string_equal(label_sets_value(sets, set, "b"), "2");
    assert_null(label_sets_value(sets, set, "d"));
    assert_null(label_sets_value(sets, 0, "b"));
}

static void test_values_are_limited_for_each_key(void **state)
{
    struct label_sets *sets = *state;
    bool is_limited;
    char value[16];
    struct label_text labels[] = {{"id", value}, {"route", "/x"}};
    for (unsigned i = 0; i < LABEL_VALUES_MAX; i++) {
        snprintf(value, sizeof value, "%u", i);
        assert_int_equal(add(sets, labels, 2, &is_limited), i + 1);
        assert_false(is_limited);
    }
    size_t strings_before = sets->strings.count;
    uint32_t others = 0;
    for (unsigned i = 0; i < 3; i++) {
        snprintf(value, sizeof value, "more %u", i);
        uint32_t set = add(sets, labels, 2, &is_limited);
        assert_true(is_limited);
        assert_true(!others || set == others);
        others = set;
    }
    assert_string_equal(label_sets_value(sets, others, "id"), LABEL_OTHER);
    assert_string_equal(label_sets_value(sets, others, "route"), "/x");
    assert_int_equal(sets->strings.count, strings_before + 1); /* LABEL_OTHER */
    /* Known values are still told apart, and so are the values of other keys. */
    snprintf(value, sizeof value, "%u", 7);
    assert_int_equal(add(sets, labels, 2, &is_limited), 8);
    assert_false(is_limited);
    const struct label_text other = {"other", "new"};
    assert_int_not_equal(add(sets, &other, 1, &is_limited), 0);
    assert_false(is_limited);
    /* A string that is known, but not as a value of this key. */
    const struct label_text text = {"id", "/x"};
    assert_string_equal(label_sets_value(sets, add(sets, &text, 1, &is_limited), "id"),
                        LABEL_OTHER);
    assert_true(is_limited);
}

static void test_keys_are_limited(void **state)
{
    struct label_sets *sets = *state;
    bool is_limited;
    char key[16];
    const struct label_text label = {key, "1"};
    for (unsigned i = 0; i < LABEL_KEYS_MAX; i++) {
        snprintf(key, sizeof key, "%u", i);
        assert_int_equal(add(sets, &label, 1, &is_limited), i + 1);
        assert_false(is_limited);
    }
    size_t strings_before = sets->strings.count;
    const struct label_text labels[] = {{"a new one", "new value"}, {"7", "1"}};
    assert_int_equal(add(sets, labels, 2, &is_limited), 8); /* the set without the new key */
    assert_true(is_limited);
    assert_int_equal(add(sets, labels, 1, &is_limited), 0);
    assert_true(is_limited);
    assert_int_equal(sets->strings.count, strings_before);
    assert_int_equal(sets->key_count, LABEL_KEYS_MAX);
    /* A string that is known, but not as a key. */
    assert_int_equal(strings_intern(&sets->strings, "text", &(uint32_t){0}), 0);
    const struct label_text text = {"text", "1"};
    assert_int_equal(add(sets, &text, 1, &is_limited), 0);
    assert_true(is_limited);
    assert_int_equal(add(sets, &labels[1], 1, &is_limited), 8);
    assert_false(is_limited);
}

static void keep(struct label_sets *sets, uint32_t each, struct renumber *ret_rows)
{
    struct label_sets kept;
    assert_int_equal(renumber_init(ret_rows, sets->set_count), 0);
    for (uint32_t i = 0; i < sets->set_count; i += each)
        renumber_keep(ret_rows, i);
    renumber_assign(ret_rows);
    assert_int_equal(label_sets_keep(sets, ret_rows, &kept), 0);
    label_sets_free(sets);
    *sets = kept;
}

/* Adds sets with that many values, starting with number `first`. */
static void add_values(struct label_sets *sets, unsigned first, unsigned count,
                       bool *ret_is_limited)
{
    char value[16];
    const struct label_text labels[] = {{"id", value}, {"route", "/x"}};
    for (unsigned i = first; i < first + count; i++) {
        snprintf(value, sizeof value, "%u", i);
        add(sets, labels, 2, ret_is_limited);
    }
}

/* Forgets every second set, and with it its value. */
static void test_sets_that_are_forgotten_make_room(void **state)
{
    struct label_sets *sets = *state;
    struct renumber rows;
    bool is_limited;
    add_values(sets, 0, LABEL_VALUES_MAX + 2, &is_limited);
    assert_true(is_limited);
    assert_int_equal(sets->set_count, LABEL_VALUES_MAX + 1);
    keep(sets, 2, &rows);
    assert_int_equal(sets->set_count, LABEL_VALUES_MAX / 2 + 1);
    /* "id", "route", "/x", LABEL_OTHER, and the values. */
    assert_int_equal(sets->strings.count, LABEL_VALUES_MAX / 2 + 4);
    uint32_t other = renumber_plus_1(&rows, LABEL_VALUES_MAX + 1);
    assert_string_equal(label_sets_value(sets, renumber_plus_1(&rows, 9), "id"), "8");
    assert_string_equal(label_sets_value(sets, renumber_plus_1(&rows, 9), "route"), "/x");
    assert_string_equal(label_sets_value(sets, other, "id"), LABEL_OTHER);
    const struct label_text labels[] = {{"id", "8"}, {"route", "/x"}};
    assert_int_equal(add(sets, labels, 2, &is_limited), 5);
    renumber_free(&rows);
}

/* Values that were added after others made room fit the limit when they are added again. */
static void test_all_sets_stay_if_none_is_forgotten(void **state)
{
    struct label_sets *sets = *state;
    struct renumber rows;
    bool is_limited;
    add_values(sets, 0, LABEL_VALUES_MAX + 2, &is_limited);
    keep(sets, 2, &rows);
    renumber_free(&rows);
    add_values(sets, LABEL_VALUES_MAX, LABEL_VALUES_MAX / 2, &is_limited);
    assert_false(is_limited);
    assert_int_equal(sets->set_count, LABEL_VALUES_MAX + 1);
    keep(sets, 1, &rows);
    assert_int_equal(sets->set_count, LABEL_VALUES_MAX + 1);
    assert_string_equal(label_sets_value(sets, LABEL_VALUES_MAX + 1, "id"), "1499");
    renumber_free(&rows);
}

static void test_sets_are_limited(void **state)
{
    struct label_sets *sets = *state;
    bool is_limited = false;
    char first[16], second[16];
    const struct label_text labels[] = {{"a", first}, {"b", second}};
    for (unsigned i = 0; i < LABEL_SETS_MAX; i++) {
        snprintf(first, sizeof first, "%u", i % 300);
        snprintf(second, sizeof second, "%u", i / 300);
        assert_int_equal(add(sets, labels, 2, &is_limited), i + 1);
    }
    assert_false(is_limited);
    snprintf(first, sizeof first, "299");
    snprintf(second, sizeof second, "299");
    assert_int_equal(add(sets, labels, 2, &is_limited), 0);
    assert_true(is_limited);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_equal_sets_are_one_in_any_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_values_are_limited_for_each_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_keys_are_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sets_that_are_forgotten_make_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_sets_stay_if_none_is_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sets_are_limited, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("label_sets", tests, NULL, NULL);
}
