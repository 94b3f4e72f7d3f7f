/* Samples that are left out because of a function in their stacks. */
#include "make_profile.h"
#include "profile/view.h"

static void test_samples_and_their_runs(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/opt/app", "");
    uint32_t ours = make_function(profile, 0x401010, app, "fgprof_stop", "", 0);
    uint32_t leaf = make_function(profile, 0x401020, app, "recv", "", 0);
    uint32_t own = make_function(profile, 0x401030, app, "work", "", 0);
    MAKE_SAMPLE(profile, "A", 11, 1, leaf, own);
    MAKE_SAMPLE(profile, "A", 11, 2, leaf, ours, own);
    MAKE_SAMPLE(profile, "A", 11, 3, own);
    struct profile_run runs[] = {{0, 10}, {1, 20}, {2, 30}, {PROFILE_NO_SAMPLE, 40}};
    profile->runs = runs;
    profile->run_count = 4;
    assert_int_equal(fgprof_profile_leave_out(profile, "fgprof_stop"), 0);
    assert_int_equal(profile->sample_count, 2);
    assert_int_equal(profile->samples[0].count, 1);
    assert_int_equal(profile->samples[1].count, 3);
    assert_int_equal(runs[0].sample, 0);
    assert_int_equal(runs[1].sample, PROFILE_NO_SAMPLE);
    assert_int_equal(runs[2].sample, 1);
    assert_int_equal(runs[3].sample, PROFILE_NO_SAMPLE);
    assert_int_equal(fgprof_profile_leave_out(profile, "stop"), 0);
    assert_int_equal(profile->sample_count, 2);
    profile->runs = NULL;
    profile->run_count = 0;
    fgprof_profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_and_their_runs),
    };
    return cmocka_run_group_tests_name("leave_out", tests, NULL, NULL);
}
