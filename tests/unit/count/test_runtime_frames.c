#include "count/runtime_frames.h"
#include "unit.h"

#include <stdio.h>

static uint64_t add(struct runtime_frames *frames, const char *name, const char *file,
                    uint32_t line)
{
    struct runtime_frame frame = {.line = line};
    uint64_t address;
    assert_int_equal(runtime_frames_text(frames, name, &frame.name), 0);
    assert_int_equal(runtime_frames_text(frames, file, &frame.file), 0);
    assert_int_equal(runtime_frames_add(frames, &frame, &address), 0);
    return address;
}

static void test_each_frame_has_its_address(void **state)
{
    (void)state;
    struct runtime_frames frames = {0};
    uint64_t first = add(&frames, "f", "a.py", 1), other = add(&frames, "f", "a.py", 2);
    assert_int_not_equal(first, other);
    assert_int_equal(add(&frames, "f", "a.py", 1), first);
    const struct runtime_frame *found = runtime_frames_find(&frames, other);
    assert_non_null(found);
    assert_string_equal(strings_get(&frames.strings, found->name), "f");
    assert_string_equal(strings_get(&frames.strings, found->file), "a.py");
    assert_int_equal(found->line, 2);
    assert_true(runtime_frames_bytes(&frames) > 0);
    runtime_frames_free(&frames);
}

static void test_addresses_of_processes(void **state)
{
    (void)state;
    struct runtime_frames frames = {0};
    uint64_t address = add(&frames, "f", "a.py", 1);
    assert_null(runtime_frames_find(&frames, 0));
    assert_null(runtime_frames_find(&frames, 0x7fffffffffff));
    assert_null(runtime_frames_find(&frames, address + 1));
    assert_null(runtime_frames_find(&frames, UINT64_MAX));
    assert_null(runtime_frames_find(NULL, address));
    runtime_frames_free(&frames);
}

/* A program may create functions for ever: those beyond the limit share a frame. */
static void test_what_is_beyond_the_limit_is_one(void **state)
{
    (void)state;
    struct runtime_frames frames = {0};
    uint64_t first = add(&frames, "f0", "a.py", 0), last = 0;
    char name[32];
    for (uint32_t i = 1; i < RUNTIME_FRAMES_MAX + 1000; i++) {
        snprintf(name, sizeof name, "f%u", i);
        last = add(&frames, name, "a.py", i);
    }
    const struct runtime_frame *other = runtime_frames_find(&frames, last);
    assert_string_equal(strings_get(&frames.strings, other->name), STRING_OTHER);
    assert_int_equal(add(&frames, "more", "b.py", 1), last);
    assert_int_equal(add(&frames, "f0", "a.py", 0), first);
    assert_true(frames.strings.count <= RUNTIME_FRAMES_MAX + 1);
    assert_true(frames.count <= RUNTIME_FRAMES_MAX + 1);
    runtime_frames_free(&frames);
}

/* Keeps the first `count` frames and their texts. */
static void keep_first(struct runtime_frames *frames, uint32_t count)
{
    struct renumber rows, texts;
    assert_int_equal(renumber_init(&rows, frames->count), 0);
    assert_int_equal(renumber_init(&texts, frames->strings.count), 0);
    for (uint32_t i = 0; i < count; i++)
        renumber_keep(&rows, i);
    runtime_frames_keep_texts(frames, &rows, &texts);
    renumber_assign(&rows);
    renumber_assign(&texts);
    runtime_frames_keep(frames, &rows, &texts);
    renumber_free(&rows);
    renumber_free(&texts);
}

static uint32_t add_until_crowded(struct runtime_frames *frames, const char *name, uint32_t line)
{
    while (!runtime_frames_are_crowded(frames))
        add(frames, name, "a.py", ++line);
    return line;
}

/* The more stay, the sooner there are too many again. */
static void test_many_frames_are_crowded(void **state)
{
    (void)state;
    struct runtime_frames frames = {0};
    uint32_t last = add_until_crowded(&frames, "f", 0);
    assert_int_equal(last, RUNTIME_FRAMES_MAX / 2);
    keep_first(&frames, last);
    last = add_until_crowded(&frames, "f", last);
    assert_int_equal(last, RUNTIME_FRAMES_MAX / 4 * 3);
    for (; last < RUNTIME_FRAMES_MAX + 5; last++)
        add(&frames, "f", "a.py", last + 1);
    keep_first(&frames, RUNTIME_FRAMES_MAX + 1);
    assert_true(runtime_frames_are_crowded(&frames));
    keep_first(&frames, 5);
    assert_int_equal(add_until_crowded(&frames, "g", 0), (RUNTIME_FRAMES_MAX - 5 + 1) / 2);
    runtime_frames_free(&frames);
}

/* Code was read, and its functions were then not counted. */
static void test_many_texts_are_crowded(void **state)
{
    (void)state;
    struct runtime_frames frames = {0};
    char name[32];
    uint32_t text;
    uint64_t address = add(&frames, "f", "a.py", 1);
    for (uint32_t i = 0; !runtime_frames_are_crowded(&frames); i++) {
        snprintf(name, sizeof name, "g%u", i);
        assert_int_equal(runtime_frames_text(&frames, name, &text), 0);
    }
    assert_int_equal(frames.strings.count, RUNTIME_FRAMES_MAX / 2);
    keep_first(&frames, 1);
    assert_int_equal(frames.strings.count, 3);
    assert_int_equal(add(&frames, "f", "a.py", 1), address);
    runtime_frames_free(&frames);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_frame_has_its_address),
        cmocka_unit_test(test_addresses_of_processes),
        cmocka_unit_test(test_what_is_beyond_the_limit_is_one),
        cmocka_unit_test(test_many_frames_are_crowded),
        cmocka_unit_test(test_many_texts_are_crowded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
