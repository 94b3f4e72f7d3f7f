#include "unit.h"
#include "cli/push/labels.h"

#include <stdio.h>
#include <unistd.h>

static void assert_clean(const char *text, const char *expected)
{
    char clean[16];
    label_clean(text, clean, sizeof clean);
    assert_string_equal(clean, expected);
}

static void test_text_is_made_utf8(void **state)
{
    (void)state;
    assert_clean("", "");
    assert_clean("redis", "redis");
    assert_clean("caf\xc3\xa9 \xe2\x82\xac", "caf\xc3\xa9 \xe2\x82\xac");
    assert_clean("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80");
    assert_clean("a\nb\x7f\x1b[0m", "a?b??[0m");
    assert_clean("\xff\xc3", "??");                     /* an invalid byte, and a cut sequence */
    assert_clean("\xc0\xaf\xed\xa0\x80", "?????");      /* overlong, and a surrogate */
    assert_clean("\xc2\x80\xf4\x90\x80\x80", "??????"); /* control, and beyond U+10FFFF */
    /* A value that is too long is cut between characters. */
    assert_clean("0123456789abcdefg", "0123456789abcde");
    assert_clean("0123456789abcd\xc3\xa9", "0123456789abcd");
}

static const char *value_of(const struct labels *labels, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < labels->count; i++) {
        if (strcmp(labels->items[i].name, name) == 0) {
            assert_null(value);
            value = labels->items[i].value;
        }
    }
    return value;
}

static void test_labels(void **state)
{
    (void)state;
    char key[] = "region", pid[16];
    struct push_options options = {.tags = {{key, "eu"}}, .tag_count = 1};
    struct labels labels;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    labels_make(&options, getpid(), "a\tb", false, &labels);
    assert_string_equal(value_of(&labels, "service.name"), "a?b");
    assert_string_equal(value_of(&labels, "process.executable.name"), "a?b");
    assert_string_equal(value_of(&labels, "process.pid"), pid);
    assert_string_equal(value_of(&labels, "region"), "eu");
    assert_non_null(value_of(&labels, "host.name"));
    options.service = "shop";
    labels_make(&options, getpid(), "a", true, &labels);
    assert_string_equal(value_of(&labels, "service.name"), "shop");
    assert_null(value_of(&labels, "process.pid"));
    assert_null(value_of(&labels, "process.executable.name"));
    options.service = NULL;
    labels_make(&options, getpid(), "", true, &labels);
    assert_string_equal(value_of(&labels, "service.name"), "unknown_service");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_made_utf8),
        cmocka_unit_test(test_labels),
    };
    return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}
