#include "unit.h"
#include "label/process_context.h"

#include <string.h>

/* A record with these bytes as its attributes. */
static struct thread_context record_of(const void *bytes, size_t count)
{
    struct thread_context context = {.state = CONTEXT_READ, .bytes = CONTEXT_HEAD_BYTES + count};
    memcpy(&context.record[CONTEXT_HEAD_BYTES], bytes, count);
    return context;
}

static void assert_text(const struct context_attribute *attribute, const char *expected)
{
    char text[ATTRIBUTE_TEXT_BYTES];
    assert_true(attribute->is_there);
    assert_true(context_attribute_text(attribute, text));
    assert_string_equal(text, expected);
}

static void assert_no_text(const char *bytes, size_t count)
{
    const struct context_attribute attribute = {(const unsigned char *)bytes, count, true};
    char text[ATTRIBUTE_TEXT_BYTES];
    assert_false(context_attribute_text(&attribute, text));
}

static void test_of_equal_keys_the_last_counts(void **state)
{
    (void)state;
    struct context_attribute attributes[ATTRIBUTE_KEYS_MAX];
    const struct thread_context context = record_of("\0\3abc\377\1x\0\2de", 12);
    context_attributes_find(&context, attributes);
    assert_text(&attributes[0], "de");
    assert_text(&attributes[255], "x");
    for (unsigned i = 1; i < 255; i++)
        assert_false(attributes[i].is_there);
}

static void test_what_does_not_fit_ends_the_attributes(void **state)
{
    (void)state;
    struct context_attribute attributes[ATTRIBUTE_KEYS_MAX];
    const struct thread_context context = record_of("\1\1a\2\6hello\3\1b", 13);
    struct thread_context short_one = context;
    context_attributes_find(&context, attributes);
    assert_text(&attributes[1], "a");
    assert_true(attributes[2].is_there);
    assert_int_equal(attributes[2].bytes, 6);
    short_one.bytes = CONTEXT_HEAD_BYTES + 9;
    context_attributes_find(&short_one, attributes);
    assert_text(&attributes[1], "a");
    assert_false(attributes[2].is_there);
    assert_false(attributes[3].is_there);
    short_one.bytes = CONTEXT_HEAD_BYTES + 4; /* a key without a length */
    context_attributes_find(&short_one, attributes);
    assert_false(attributes[2].is_there);
    short_one.bytes = 0;
    context_attributes_find(&short_one, attributes);
    assert_false(attributes[1].is_there);
}

static void test_a_value_is_text_if_it_is_utf_8(void **state)
{
    (void)state;
    struct context_attribute attribute = {(const unsigned char *)"a\nb\x7f\xc3\xa4\xf0\x9f\x90\x9b",
                                          10, true};
    assert_text(&attribute, "a b \xc3\xa4\xf0\x9f\x90\x9b");
    assert_no_text("", 0);
    assert_no_text("\xff", 1);
    assert_no_text("a\x80", 2);
    assert_no_text("\xc3", 1);             /* cut off */
    assert_no_text("\xc0\xaf", 2);         /* overlong */
    assert_no_text("\xe0\x80\xaf", 3);     /* overlong */
    assert_no_text("\xed\xa0\x80", 3);     /* a surrogate */
    assert_no_text("\xf4\x90\x80\x80", 4); /* beyond U+10FFFF */
    assert_no_text("\xf8\x88\x80\x80\x80", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_equal_keys_the_last_counts),
        cmocka_unit_test(test_what_does_not_fit_ends_the_attributes),
        cmocka_unit_test(test_a_value_is_text_if_it_is_utf_8),
    };
    return cmocka_run_group_tests_name("context_attributes", tests, NULL, NULL);
}
