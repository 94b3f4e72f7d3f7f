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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_frame_has_its_address),
        cmocka_unit_test(test_addresses_of_processes),
        cmocka_unit_test(test_what_is_beyond_the_limit_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
