#include "unit.h"
#include "profile/profile.h"
#include "profile/view.h"

#include <errno.h>

static int set_up(void **state)
{
    struct fgprof_profile *profile = NULL;
    int err = profile_new(&profile);
    *state = profile;
    return err;
}

static int tear_down(void **state)
{
    fgprof_profile_free(*state);
    return 0;
}

static void test_functions_are_interned(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t first, again, other[3];
    assert_int_equal(profile_add_function(profile, "a::b", "_ZN1a1bEv", "a.cc", &first), 0);
    assert_int_equal(profile_add_function(profile, "x", "_ZN1a1bEv", "a.cc", &other[0]), 0);
    assert_int_equal(profile_add_function(profile, "a::b", "_ZN1a1bEi", "a.cc", &other[1]), 0);
    assert_int_equal(profile_add_function(profile, "a::b", "_ZN1a1bEv", "", &other[2]), 0);
    assert_int_equal(profile_add_function(profile, "a::b", "_ZN1a1bEv", "a.cc", &again), 0);
    assert_int_equal(first, again);
    assert_int_equal(profile->function_count, 4);
    for (size_t i = 0; i < 3; i++) {
        assert_int_not_equal(other[i], first);
        assert_int_not_equal(other[i], other[(i + 1) % 3]);
    }
    const struct profile_function *function = &profile->functions[first];
    assert_string_equal(strings_get(&profile->strings, function->name), "a::b");
    assert_string_equal(strings_get(&profile->strings, function->system_name), "_ZN1a1bEv");
    assert_string_equal(strings_get(&profile->strings, function->file), "a.cc");
    assert_int_equal(profile->functions[other[2]].file, 0);
}

static void test_mappings_are_told_apart_by_place_and_file(void **state)
{
    struct fgprof_profile *profile = *state;
    struct profile_mapping mapping = {.start = 1, .limit = 2, .offset = 3, .build_id = 5};
    uint32_t first, next;
    assert_int_equal(strings_intern(&profile->strings, "/bin/a", &mapping.path), 0);
    assert_int_equal(profile_add_mapping(profile, &mapping, &first), 0);
    mapping.has_functions = true; /* found later, and not part of the mapping's identity */
    assert_int_equal(profile_add_mapping(profile, &mapping, &next), 0);
    assert_int_equal(next, first);
    struct profile_mapping other[5] = {mapping, mapping, mapping, mapping, mapping};
    other[0].start = 9;
    other[1].limit = 9;
    other[2].offset = 9;
    other[3].path = 0;
    other[4].build_id = 9;
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(profile_add_mapping(profile, &other[i], &next), 0);
        assert_int_equal(next, first + 1 + i);
    }
    assert_int_equal(profile->mapping_count, 6);
}

static void test_locations_are_interned(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t first, next;
    bool is_new;
    assert_int_equal(profile_add_location(profile, 0x1000, 0, &first, &is_new), 0);
    assert_true(is_new);
    assert_int_equal(profile_add_location(profile, 0x1000, 0, &next, &is_new), 0);
    assert_false(is_new);
    assert_int_equal(next, first);
    assert_int_equal(profile_add_location(profile, 0x1001, 0, &next, &is_new), 0);
    assert_true(is_new);
    assert_int_equal(profile_add_location(profile, 0x1000, 1, &next, &is_new), 0);
    assert_true(is_new);
    assert_int_equal(profile_add_location(profile, 0x1000, PROFILE_NO_MAPPING, &next, &is_new), 0);
    assert_true(is_new);
    assert_int_equal(profile->location_count, 4);
    assert_int_equal(profile->locations[next].address, 0x1000);
    assert_true(profile->locations[next].mapping == PROFILE_NO_MAPPING);
    assert_int_equal(profile->locations[next].line_count, 0);
    assert_false(profile->locations[next].is_note);
}

/* Generated code at an address may be replaced, and is then a new location. */
static void test_generated_code_is_known_by_its_function_too(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t plain, first, second, again;
    bool is_new;
    assert_int_equal(profile_add_location(profile, 0x1000, 0, &plain, &is_new), 0);
    assert_int_equal(profile_add_jit_location(profile, 0x1000, 0, 0, &first, &is_new), 0);
    assert_true(is_new);
    assert_int_equal(profile_add_jit_location(profile, 0x1000, 0, 1, &second, &is_new), 0);
    assert_true(is_new);
    assert_int_equal(profile_add_jit_location(profile, 0x1000, 0, 0, &again, &is_new), 0);
    assert_false(is_new);
    assert_int_equal(again, first);
    assert_int_equal(profile->location_count, 3);
}

static void test_lines_belong_to_their_location(void **state)
{
    struct fgprof_profile *profile = *state;
    struct profile_line lines[3] = {{0, 10, true}, {1, 20, true}, {2, 30, false}};
    uint32_t first, second;
    bool is_new;
    assert_int_equal(profile_add_location(profile, 1, 0, &first, &is_new), 0);
    assert_int_equal(profile_add_location(profile, 2, 0, &second, &is_new), 0);
    assert_int_equal(profile_set_lines(profile, second, lines, 3), 0);
    assert_int_equal(profile_set_lines(profile, first, &lines[1], 1), 0);
    const struct profile_location *location = &profile->locations[second];
    assert_int_equal(location->line_count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(profile->lines[location->first_line + i].line, 10 * (i + 1));
    location = &profile->locations[first];
    assert_int_equal(location->line_count, 1);
    assert_int_equal(profile->lines[location->first_line].function, 1);
}

static void test_notes_are_interned_and_no_places(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t place, first, again, other;
    bool is_new;
    assert_int_equal(profile_add_note(profile, "[truncated: max depth]", &first), 0);
    /* A note also has address 0, but is not this location. */
    assert_int_equal(profile_add_location(profile, 0, PROFILE_NO_MAPPING, &place, &is_new), 0);
    assert_true(is_new);
    assert_int_equal(profile_add_note(profile, "[truncated: max depth]", &again), 0);
    assert_int_equal(profile_add_note(profile, "[other]", &other), 0);
    assert_int_equal(first, again);
    assert_int_not_equal(first, other);
    assert_int_not_equal(first, place);
    const struct profile_location *note = &profile->locations[first];
    assert_true(note->is_note);
    assert_true(note->mapping == PROFILE_NO_MAPPING);
    assert_int_equal(note->line_count, 1);
    const struct profile_function *function =
        &profile->functions[profile->lines[note->first_line].function];
    assert_string_equal(strings_get(&profile->strings, function->name), "[truncated: max depth]");
}

static void test_stacks_are_interned(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t locations[] = {3, 1, 2}, reversed[] = {2, 1, 3}, ids[5];
    assert_int_equal(profile_add_stack(profile, locations, 3, &ids[0]), 0);
    assert_int_equal(profile_add_stack(profile, reversed, 3, &ids[1]), 0);
    assert_int_equal(profile_add_stack(profile, locations, 2, &ids[2]), 0);
    assert_int_equal(profile_add_stack(profile, NULL, 0, &ids[3]), 0);
    assert_int_equal(profile_add_stack(profile, locations, 3, &ids[4]), 0);
    assert_int_equal(ids[4], ids[0]);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(ids[i], i);
    assert_int_equal(profile_add_stack(profile, locations, 0, &ids[4]), 0);
    assert_int_equal(ids[4], ids[3]);
    const struct profile_stack *stack = &profile->stacks[ids[1]];
    assert_int_equal(stack->depth, 3);
    assert_memory_equal(&profile->stack_locations[stack->first_location], reversed,
                        sizeof reversed);
}

static void test_samples_of_equal_stack_and_labels_merge(void **state)
{
    struct fgprof_profile *profile = *state;
    struct profile_sample sample = {
        .stack = 1, .thread_name = 2, .tid = 3, .count = 10, .time_ns = 100};
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
    sample.count = 5;
    sample.time_ns = 50;
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
    assert_int_equal(profile->sample_count, 1);
    assert_int_equal(profile->samples[0].count, 15);
    assert_int_equal(profile->samples[0].time_ns, 150);
    struct profile_sample other[8] = {sample, sample, sample, sample,
                                      sample, sample, sample, sample};
    other[0].stack = 9;
    other[1].thread_name = 9;
    other[2].tid = 9;
    other[3].state = THREAD_STOPPED;
    other[4].syscall_name = 9;
    other[5].wait_channel = 9;
    other[6].process = 9;
    other[7].wait_plus_1 = 9;
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(profile_add_sample(profile, &other[i], NULL), 0);
    assert_int_equal(profile->sample_count, 9);
    assert_int_equal(profile->samples[0].count, 15);
    assert_int_equal(profile->samples[3].tid, 9);
}

static void test_waits_and_their_labels(void **state)
{
    struct fgprof_profile *profile = *state;
    struct profile_wait wait = {.resource = 3, .owner_name = 4, .owner_stack = 5}, other = wait;
    uint32_t first, again, elsewhere;
    assert_int_equal(profile_add_wait(profile, &wait, &first), 0);
    assert_int_equal(profile_add_wait(profile, &wait, &again), 0);
    assert_int_equal(first, again);
    other.owner_stack = 6;
    other.owner_wait_plus_1 = first + 1;
    assert_int_equal(profile_add_wait(profile, &other, &elsewhere), 0);
    assert_int_not_equal(elsewhere, first);
    assert_int_equal(profile->waits[elsewhere].label, profile->waits[first].label);
    const struct profile_wait *label = &profile->waits[profile->waits[first].label];
    assert_int_equal(label->resource, 3);
    assert_int_equal(label->owner_stack, PROFILE_NO_STACK);
    assert_int_equal(label->owner_wait_plus_1, 0);
    assert_int_equal(profile->waits[label->label].label, label->label);
    /* A view distinguishes resources and owners, but not the owners' places. */
    struct profile_sample sample = {.stack = 1, .count = 1, .wait_plus_1 = first + 1};
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
    sample.wait_plus_1 = elsewhere + 1;
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
    assert_int_equal(profile->sample_count, 2);
    struct profile_view view;
    assert_int_equal(profile_view_make(profile, false, &view), 0);
    assert_int_equal(view.sample_count, 1);
    assert_int_equal(view.samples[0].count, 2);
    profile_view_free(&view);
}

static void test_many_rows_of_each_table(void **state)
{
    enum { ROWS = 5000 };
    struct fgprof_profile *profile = *state;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < ROWS; i++) {
            uint32_t location, stack;
            bool is_new;
            assert_int_equal(profile_add_location(profile, i * 4ull, 0, &location, &is_new), 0);
            assert_int_equal(is_new, round == 0);
            assert_int_equal(location, i);
            uint32_t locations[2] = {location, 0};
            assert_int_equal(profile_add_stack(profile, locations, 2, &stack), 0);
            assert_int_equal(stack, i);
            struct profile_sample sample = {.stack = stack, .count = i, .time_ns = 1};
            assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
        }
    }
    assert_int_equal(profile->sample_count, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(profile->samples[i].count, 2 * i);
        assert_int_equal(profile->samples[i].time_ns, 2);
    }
}

static void test_folded_flags(void **state)
{
    struct fgprof_profile *profile = *state;
    assert_int_equal(
        fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_THREADS | FGPROF_FOLDED_LINES), 0);
    assert_int_equal(profile->folded_flags, 3);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, 32), -EINVAL);
    assert_int_equal(profile->folded_flags, 3);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_STATE), 0);
    assert_int_equal(profile->folded_flags, 4);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, 0), 0);
    assert_int_equal(profile->folded_flags, 0);
}

static void test_what_is_kept(void **state)
{
    struct fgprof_profile *profile = *state;
    struct profile_sample sample = {0};
    assert_true(profile_keeps(profile, &sample));
    assert_int_equal(fgprof_profile_set_kept(profile, (enum fgprof_kept)3), -EINVAL);
    for (uint32_t i = 0; i < THREAD_STATE_COUNT; i++) {
        sample.state = i;
        assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_ALL), 0);
        assert_true(profile_keeps(profile, &sample));
        assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU), 0);
        assert_int_equal(profile_keeps(profile, &sample), i == THREAD_RUNNING);
        assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_OFF_CPU), 0);
        assert_int_equal(profile_keeps(profile, &sample), i != THREAD_RUNNING);
    }
}

static void test_summary_is_the_profiles_own(void **state)
{
    struct fgprof_profile *profile = *state;
    profile->summary.samples = 17;
    assert_int_equal(profile->summary.samples, 17);
}

static void test_free_accepts_null(void **state)
{
    (void)state;
    fgprof_profile_free(NULL);
}

#define WITH_PROFILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PROFILE(test_functions_are_interned),
        WITH_PROFILE(test_mappings_are_told_apart_by_place_and_file),
        WITH_PROFILE(test_locations_are_interned),
        WITH_PROFILE(test_generated_code_is_known_by_its_function_too),
        WITH_PROFILE(test_lines_belong_to_their_location),
        WITH_PROFILE(test_notes_are_interned_and_no_places),
        WITH_PROFILE(test_stacks_are_interned),
        WITH_PROFILE(test_samples_of_equal_stack_and_labels_merge),
        WITH_PROFILE(test_waits_and_their_labels),
        WITH_PROFILE(test_many_rows_of_each_table),
        WITH_PROFILE(test_folded_flags),
        WITH_PROFILE(test_what_is_kept),
        WITH_PROFILE(test_summary_is_the_profiles_own),
        cmocka_unit_test(test_free_accepts_null),
    };
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
