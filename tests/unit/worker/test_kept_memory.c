/* Kinds of kept memory: the limits apply to the sum of what is reported. */
#include "owners_world.h"
#include "base/array.h"
#include "worker/kept_memory.h"

#include <string.h>

static void test_each_kind_has_a_name(void **state)
{
    (void)state;
    for (enum kept_kind kind = 0; kind < KEPT_KIND_COUNT; kind++) {
        assert_non_null(kept_kind_name(kind));
        for (enum kept_kind other = 0; other < kind; other++)
            assert_string_not_equal(kept_kind_name(kind), kept_kind_name(other));
    }
}

/* A wait adds to its kind, and as much to the total of counted data; a program's data adds only to
 * its own kind and to the total of programs. */
static void test_what_is_limited_is_what_is_shown(void **state)
{
    struct world *world = *state;
    struct results *results = &world->results;
    size_t before[KEPT_KIND_COUNT], counted = kept_bytes_counted(results);
    size_t of_programs = kept_bytes_of_programs(results), shown = 0;
    const struct counted_wait wait = {.kind = RESOURCE_MUTEX, .key = 0x77};
    uint32_t wait_plus_1;
    for (enum kept_kind kind = 0; kind < KEPT_KIND_COUNT; kind++)
        shown += before[kind] = kept_bytes(results, kind);
    assert_int_equal(shown, counted + of_programs);
    assert_int_equal(waits_add(&results->waits, &wait, &wait_plus_1), 0);
    size_t added = kept_bytes(results, KEPT_WAITS) - before[KEPT_WAITS];
    assert_true(added > 0);
    assert_int_equal(kept_bytes_counted(results), counted + added);
    assert_int_equal(kept_bytes_of_programs(results), of_programs);
    assert_int_equal(array_reserve(&results->modules.items, &results->modules.capacity, 1), 0);
    size_t modules = kept_bytes(results, KEPT_MODULES) - before[KEPT_MODULES];
    assert_true(modules > 0);
    assert_int_equal(kept_bytes_of_programs(results), of_programs + modules);
    const struct runtime_frame frame = {.line = 1};
    uint64_t address;
    assert_int_equal(runtime_frames_add(&results->runtime_frames, &frame, &address), 0);
    assert_true(kept_bytes(results, KEPT_RUNTIME_FRAMES) > before[KEPT_RUNTIME_FRAMES]);
    assert_true(kept_bytes_of_programs(results) > of_programs + modules);
    assert_int_equal(kept_bytes_counted(results), counted + added);
    assert_int_equal(kept_bytes_all(results),
                     kept_bytes_counted(results) + kept_bytes_of_programs(results));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_kind_has_a_name),
        TEST(test_what_is_limited_is_what_is_shown),
    };
    return cmocka_run_group_tests_name("kept_memory", tests, NULL, NULL);
}
