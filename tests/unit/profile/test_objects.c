#include "make_objects.h"
#include "profile/objects.h"
#include "profile/view.h"

#include <errno.h>
#include <math.h>

static void assert_types(struct fgprof_profile *profile, const char *expected)
{
    struct object_type types[OBJECT_TYPES_MAX];
    size_t count = objects_types(profile, types);
    char all[200] = "";
    for (size_t i = 0; i < count; i++) {
        strcat(all, i ? " " : "");
        strcat(all, types[i].name);
        strcat(all, "/");
        strcat(all, types[i].unit);
        strcat(all, i == objects_main_type(profile) ? "*" : "");
    }
    assert_string_equal(all, expected);
    fgprof_profile_free(profile);
}

static void test_types(void **state)
{
    (void)state;
    assert_types(make_heap(), "alloc_objects/count alloc_space/bytes inuse_objects/count "
                              "inuse_space/bytes*");
    struct fgprof_profile *allocs = make_heap();
    assert_int_equal(fgprof_profile_set_kind(allocs, FGPROF_KIND_ALLOCS), 0);
    assert_types(allocs, "alloc_objects/count alloc_space/bytes* inuse_objects/count "
                         "inuse_space/bytes");
    assert_types(make_growth(), "faults/count rss/bytes*");
    assert_types(make_threads(), "threadcreate/count*");
    assert_types(make_custom("sockets"), "sockets/count*");
    assert_types(make_custom(""), "custom/count*");
}

/* An object of n bytes is sampled with probability 1-e^(-n/rate). */
static void test_scaled_to_all_objects(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_heap();
    const struct profile_sample *small = &profile->samples[0], *large = &profile->samples[1];
    double scale = 1 / (1 - exp(-516.0 / MADE_RATE));
    assert_true(fabs(objects_scale(profile, 516) / scale - 1) < 1e-9);
    assert_true(fabs(objects_amount(profile, small, OBJECTS_IN_USE) / (60 * scale) - 1) < 1e-9);
    assert_int_equal(objects_value(profile, small, OBJECTS_MADE), 101656);
    assert_int_equal(objects_value(profile, small, BYTES_MADE), 52454604);
    assert_int_equal(objects_value(profile, small, BYTES_IN_USE), 31472763);
    assert_int_equal(objects_value(profile, large, OBJECTS_MADE), 9);
    assert_int_equal(objects_value(profile, large, OBJECTS_IN_USE), 0);
    assert_int_equal(objects_value(profile, large, BYTES_MADE), 9701573);
    assert_int_equal(objects_main_value(profile, small), 31472763);
    /* All objects were sampled. */
    profile->objects.rate = 0;
    assert_int_equal(objects_value(profile, small, BYTES_MADE), 51600);
    profile->objects.rate = 1;
    assert_int_equal(objects_value(profile, small, OBJECTS_MADE), 100);
    fgprof_profile_free(profile);
}

/* Any numbers in a file give a result. */
static void test_numbers_of_any_size(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_HEAP);
    profile->objects.rate = UINT64_MAX;
    struct profile_sample sample = {.object_bytes = UINT64_MAX, .made = INT64_MAX, .gone = 0};
    assert_true(objects_value(profile, &sample, BYTES_MADE) == INT64_MAX);
    sample.made = 0;
    sample.gone = INT64_MAX;
    assert_true(objects_value(profile, &sample, BYTES_IN_USE) == INT64_MIN);
    sample = (struct profile_sample){.made = 5, .gone = 7};
    assert_int_equal(objects_value(profile, &sample, OBJECTS_IN_USE), -2);
    fgprof_profile_free(profile);
}

static void test_samples_of_nothing_are_not_shown(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_heap();
    struct profile_view view;
    assert_int_equal(profile_view_make(profile, false, &view), 0);
    assert_int_equal(view.sample_count, 3);
    profile_view_free(&view);
    assert_int_equal(profile_view_make_times(profile, FGPROF_TIME_WALL, false, &view), 0);
    assert_int_equal(view.sample_count, 3);
    assert_int_equal(view.samples[0].gone, 40);
    profile_view_free(&view);
    fgprof_profile_free(profile);
    /* Removed objects do not count in a custom profile. */
    profile = make_custom("sockets");
    assert_int_equal(profile_view_make(profile, false, &view), 0);
    assert_int_equal(view.sample_count, 1);
    profile_view_free(&view);
    fgprof_profile_free(profile);
}

static void assert_becomes(struct fgprof_profile *profile, enum fgprof_kind kind, int expected)
{
    enum fgprof_kind was = fgprof_profile_kind(profile);
    assert_int_equal(fgprof_profile_set_kind(profile, kind), expected);
    assert_int_equal(fgprof_profile_kind(profile), expected ? was : kind);
}

static void test_kinds_that_it_can_become(void **state)
{
    (void)state;
    struct fgprof_profile *heap = make_heap(), *growth = make_growth(), *wall = make_profile();
    assert_becomes(heap, FGPROF_KIND_HEAP, 0);
    assert_becomes(heap, FGPROF_KIND_ALLOCS, 0);
    assert_becomes(heap, FGPROF_KIND_HEAP, 0);
    for (int kind = FGPROF_KIND_WALL; kind <= FGPROF_KIND_BLAME; kind++)
        assert_becomes(heap, (enum fgprof_kind)kind, -EINVAL);
    assert_becomes(heap, FGPROF_KIND_GROWTH, -EINVAL);
    assert_becomes(heap, (enum fgprof_kind)(FGPROF_KIND_CUSTOM + 1), -EINVAL);
    assert_becomes(growth, FGPROF_KIND_GROWTH, 0);
    assert_becomes(growth, FGPROF_KIND_HEAP, -EINVAL);
    assert_becomes(wall, FGPROF_KIND_HEAP, -EINVAL);
    assert_becomes(wall, FGPROF_KIND_WALL, 0);
    assert_int_equal(fgprof_profile_set_kept(heap, FGPROF_KEPT_ON_CPU), -EINVAL);
    assert_int_equal(fgprof_profile_set_kept(heap, FGPROF_KEPT_ALL), 0);
    fgprof_profile_free(heap);
    fgprof_profile_free(growth);
    fgprof_profile_free(wall);
}

static void test_losses_are_said(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_heap();
    char note[OBJECTS_NOTE_BYTES];
    assert_false(objects_note(profile, note));
    profile->objects.made_lost = UINT64_MAX;
    profile->objects.gone_lost = UINT64_MAX;
    profile->summary.allocator_is_own = true;
    assert_true(objects_note(profile, note));
    assert_string_equal(note,
                        "recording fell behind: 18446744073709551615 objects are missing here, and "
                        "18446744073709551615 that are gone still count as in use; the program has "
                        "an allocator of its own, whose allocations are not seen");
    profile->objects.made_lost = profile->objects.gone_lost = 0;
    assert_true(objects_note(profile, note));
    assert_string_equal(note, "the program has an allocator of its own, whose allocations are not "
                              "seen");
    profile->summary.allocator_is_own = false;
    profile->summary.sees_user_only = 1;
    assert_true(objects_note(profile, note));
    assert_string_equal(note, "pages that system calls touched first are not seen");
    fgprof_profile_free(profile);
    profile = make_custom("sockets");
    profile->objects.made_lost = 2;
    assert_true(objects_note(profile, note));
    assert_string_equal(note, "2 values could not be read");
    fgprof_profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_scaled_to_all_objects),
        cmocka_unit_test(test_numbers_of_any_size),
        cmocka_unit_test(test_samples_of_nothing_are_not_shown),
        cmocka_unit_test(test_kinds_that_it_can_become),
        cmocka_unit_test(test_losses_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
