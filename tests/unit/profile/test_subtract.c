#include "make_objects.h"
#include "profile/objects.h"

#include <errno.h>

static const struct profile_sample *sample_of(const struct fgprof_profile *profile,
                                              const char *leaf, uint64_t object_bytes)
{
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        const struct profile_stack *stack = &profile->stacks[sample->stack];
        uint32_t location = profile->stack_locations[stack->first_location];
        uint32_t line = profile->locations[location].first_line;
        uint32_t name = profile->functions[profile->lines[line].function].name;
        if (sample->object_bytes == object_bytes &&
            strcmp(strings_get(&profile->strings, name), leaf) == 0)
            return sample;
    }
    fail_msg("no sample of %s with %lu", leaf, (unsigned long)object_bytes);
    return NULL;
}

static void assert_difference(const struct fgprof_profile *profile, const char *leaf,
                              uint64_t object_bytes, int64_t made, int64_t gone)
{
    const struct profile_sample *sample = sample_of(profile, leaf, object_bytes);
    assert_int_equal((int64_t)sample->made, made);
    assert_int_equal((int64_t)sample->gone, gone);
}

static struct fgprof_profile *subtract(struct fgprof_profile *after, struct fgprof_profile *before)
{
    struct fgprof_profile *difference;
    assert_int_equal(fgprof_profile_subtract(after, before, &difference), 0);
    fgprof_profile_free(after);
    fgprof_profile_free(before);
    return difference;
}

/* The same process 10 s later, with its tables in another order. */
static struct fgprof_profile *make_later(void)
{
    struct fgprof_profile *profile = make_profile();
    uint32_t library = make_mapping(profile, 0x7f0000000000, "/usr/lib/libx.so", "22");
    uint32_t app = make_mapping(profile, 0x400000, "/srv/app", "0011ff"), process;
    uint32_t new = make_function(profile, 0x7f0000000010, library, "x_open", "x.c", 3);
    uint32_t parse = make_function(profile, 0x400523, app, "parse", "a.c", 20);
    uint32_t cache = make_function(profile, 0x400610, app, "fill_cache", "cache.c", 70);
    uint32_t begin = make_function(profile, 0x400456, app, "main", "a.c", 9);
    assert_int_equal(profile_add_process(profile, 11, "app", &process), 0);
    profile->kind = FGPROF_KIND_HEAP;
    profile->objects.rate = MADE_RATE;
    profile->objects.resident_peak = 99;
    profile->start_time_ns = 1790000000000000000;
    profile->summary.elapsed_ns = 70000000000;
    MAKE_OBJECTS(profile, 64, 5, 1, new, begin);
    MAKE_OBJECTS(profile, 4096, 3, 3, cache, begin);
    MAKE_OBJECTS(profile, 516, 110, 70, parse, begin);
    MAKE_OBJECTS(profile, 1 << 20, 8, 8, cache, begin);
    return profile;
}

static void test_what_came_and_went(void **state)
{
    (void)state;
    struct fgprof_profile *difference = subtract(make_later(), make_heap());
    assert_difference(difference, "x_open", 64, 5, 1);
    assert_difference(difference, "parse", 516, 10, 30);
    assert_difference(difference, "fill_cache", 4096, 0, 3);
    assert_difference(difference, "fill_cache", 1 << 20, 0, 0);
    assert_int_equal(
        objects_value(difference, sample_of(difference, "fill_cache", 4096), OBJECTS_IN_USE), -386);
    assert_int_equal(difference->summary.elapsed_ns, 10000000000);
    assert_int_equal(difference->start_time_ns, 1790000060000000000);
    assert_int_equal(difference->objects.resident_peak, 99);
    assert_int_equal(difference->process_count, 1);
    /* Folded output has no negative counts, so those stacks are left out. */
    assert_written(difference, FGPROF_FOLDED, "main;x_open 2097280\n");
    fgprof_profile_free(difference);
}

static void test_nothing_has_changed(void **state)
{
    (void)state;
    struct fgprof_profile *difference = subtract(make_heap(), make_heap());
    assert_written(difference, FGPROF_FOLDED, "");
    assert_int_equal(difference->summary.elapsed_ns, 0);
    fgprof_profile_free(difference);
}

/* Samples that only one profile has, and locations of every kind. */
static struct fgprof_profile *make_places(uint64_t made)
{
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_HEAP);
    struct made_line lines[] = {{"inner", "in.h", 3, true}, {"outer", "a.c", 7, false}, {0}};
    uint32_t kernel, note, jit, function;
    bool is_new;
    assert_int_equal(profile_add_note(profile, "[truncated: max depth]", &note), 0);
    assert_int_equal(profile_add_kernel_function(profile, "do_fault", &kernel), 0);
    assert_int_equal(profile_add_function(profile, "run app.js:1", "", "app.js", &function), 0);
    assert_int_equal(
        profile_add_jit_location(profile, 0x99, PROFILE_NO_MAPPING, function, &jit, &is_new), 0);
    struct profile_line line = {.function = function, .line = 12};
    assert_int_equal(profile_set_lines(profile, jit, &line, 1), 0);
    uint32_t inlined = make_location(profile, 0x400700, 0, 0, lines);
    uint32_t unnamed = make_location(profile, 0x400800, 0, 0, NULL);
    MAKE_OBJECTS(profile, 8, made, 0, kernel, unnamed, inlined, jit, note);
    profile->samples[0].thread_name = make_string(profile, "pool");
    MAKE_OBJECTS(profile, 8, made, 0, kernel, unnamed, inlined, jit, note);
    return profile;
}

static void test_places_of_every_kind(void **state)
{
    (void)state;
    struct fgprof_profile *after = make_places(9);
    struct fgprof_profile *difference = subtract(after, make_places(4));
    assert_int_equal(difference->sample_count, 2);
    assert_int_equal(difference->samples[0].made, 5);
    assert_int_equal(difference->samples[1].made, 5);
    assert_int_equal(fgprof_profile_set_folded_flags(difference, FGPROF_FOLDED_THREADS), 0);
    assert_written(difference, FGPROF_FOLDED,
                   "[truncated: max depth];run app.js:1_[j];outer;inner_[i];[app];do_fault_[k] 40\n"
                   "pool;[truncated: max depth];run app.js:1_[j];outer;inner_[i];[app];"
                   "do_fault_[k] 40\n");
    fgprof_profile_free(difference);
}

/* Objects that are made in the function at 0x400523. */
static struct fgprof_profile *make_build(const char *build_id, const char *function, uint32_t line,
                                         uint64_t made)
{
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/srv/app", build_id), process;
    uint32_t place = make_function(profile, 0x400523, app, function, "a.c", line);
    assert_int_equal(profile_add_process(profile, 11, "app", &process), 0);
    profile->kind = FGPROF_KIND_HEAP;
    profile->objects.rate = MADE_RATE;
    MAKE_OBJECTS(profile, 64, made, 0, place);
    return profile;
}

/* Mappings of programs without build id look equal, but the code may be another build's. */
static void test_builds_without_build_id(void **state)
{
    (void)state;
    struct fgprof_profile *difference =
        subtract(make_build("", "render", 20, 5), make_build("", "parse", 20, 3));
    assert_int_equal(difference->mapping_count, 1);
    assert_int_equal(difference->location_count, 2);
    assert_int_equal(difference->sample_count, 2);
    assert_difference(difference, "render", 64, 5, 0);
    assert_difference(difference, "parse", 64, -3, 0);
    assert_int_equal(difference->locations[1].address, 0x400523);
    assert_int_equal(difference->locations[1].function_offset, 0x23);
    fgprof_profile_free(difference);
    difference = subtract(make_build("", "parse", 20, 5), make_build("", "parse", 19, 3));
    assert_int_equal(difference->location_count, 2);
    fgprof_profile_free(difference);
    difference = subtract(make_build("", "parse", 20, 5), make_build("", "parse", 20, 3));
    assert_int_equal(difference->location_count, 1);
    assert_difference(difference, "parse", 64, 2, 0);
    fgprof_profile_free(difference);
}

/* Debug information of the same build may have been missing from one recording. */
static void test_one_build_with_other_names(void **state)
{
    (void)state;
    struct fgprof_profile *difference =
        subtract(make_build("0011ff", "parse", 20, 5), make_build("0011ff", "parse.part.0", 0, 3));
    assert_int_equal(difference->location_count, 1);
    assert_int_equal(difference->sample_count, 1);
    assert_difference(difference, "parse", 64, 2, 0);
    fgprof_profile_free(difference);
}

static void test_profiles_that_do_not_fit(void **state)
{
    (void)state;
    struct fgprof_profile *heap = make_heap(), *growth = make_growth(), *wall = make_profile();
    struct fgprof_profile *sockets = make_custom("sockets"), *files = make_custom("files");
    struct fgprof_profile *coarse = make_heap(), *difference;
    coarse->objects.rate *= 2;
    assert_int_equal(fgprof_profile_subtract(heap, growth, &difference), -EINVAL);
    assert_int_equal(fgprof_profile_subtract(heap, wall, &difference), -EINVAL);
    assert_int_equal(fgprof_profile_subtract(wall, wall, &difference), -EINVAL);
    assert_int_equal(fgprof_profile_subtract(heap, coarse, &difference), -EINVAL);
    assert_int_equal(fgprof_profile_subtract(files, sockets, &difference), -EINVAL);
    fgprof_profile_free(heap);
    fgprof_profile_free(growth);
    fgprof_profile_free(wall);
    fgprof_profile_free(sockets);
    fgprof_profile_free(files);
    fgprof_profile_free(coarse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_came_and_went),
        cmocka_unit_test(test_nothing_has_changed),
        cmocka_unit_test(test_places_of_every_kind),
        cmocka_unit_test(test_builds_without_build_id),
        cmocka_unit_test(test_one_build_with_other_names),
        cmocka_unit_test(test_profiles_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
