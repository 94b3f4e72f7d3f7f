/* What profiles return to programs that were built with an older or a newer header. */
#include "make_profile.h"
#include "fgprof.h"

#include <errno.h>

#define UNTOUCHED 0xa5

/* The bytes behind a struct of the caller, which has `struct_bytes` bytes, are as they were. */
#define ASSERT_UNTOUCHED(bytes, struct_bytes)                                                      \
    for (size_t i_ = (struct_bytes); i_ < sizeof(bytes); i_++)                                     \
    assert_int_equal(((const unsigned char *)&(bytes))[i_], UNTOUCHED)

/* Structs of a later version's header, with one more field. */
struct later_summary {
    struct fgprof_summary known;
    uint64_t added;
};

struct later_function {
    struct fgprof_function known;
    const char *added;
};

struct later_activity {
    struct fgprof_activity known;
    uint64_t added;
};

static struct fgprof_profile *make_world(void)
{
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/bin/app", "");
    uint32_t at = make_function(profile, 0x401000, app, "work", "a.c", 1);
    make_state(profile, at, THREAD_SLEEPING, "futex", "", 2);
    profile->summary.error = -EIO;
    profile->summary.lacks_files = true;
    profile->summary.waiting_ns = 5;
    profile->summary.unknown_ns = 7;
    return profile;
}

static void test_summary_of_this_header(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_world();
    struct fgprof_summary summary;
    fgprof_profile_summary(profile, &summary, sizeof summary);
    assert_memory_equal(&summary, &profile->summary, sizeof summary);
    fgprof_profile_free(profile);
}

static void test_summary_of_an_older_header(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_world();
    struct fgprof_summary summary;
    const size_t older = offsetof(struct fgprof_summary, unknown_ns);
    memset(&summary, UNTOUCHED, sizeof summary);
    fgprof_profile_summary(profile, &summary, older);
    assert_int_equal(summary.error, -EIO);
    assert_true(summary.lacks_files);
    assert_int_equal(summary.waiting_ns, 5);
    ASSERT_UNTOUCHED(summary, older);
    fgprof_profile_free(profile);
}

static void test_summary_of_a_later_header(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_world();
    struct later_summary summary;
    memset(&summary, UNTOUCHED, sizeof summary);
    fgprof_profile_summary(profile, &summary.known, sizeof summary);
    assert_int_equal(summary.known.unknown_ns, 7);
    assert_int_equal(summary.added, 0);
    fgprof_profile_free(profile);
}

static void test_functions(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_world();
    struct fgprof_function row, older_row;
    struct later_function later_row;
    fgprof_functions *functions;
    const size_t older = offsetof(struct fgprof_function, state_ns);
    assert_int_equal(fgprof_profile_functions(profile, NULL, 0, &functions), 0);
    assert_int_equal(fgprof_functions_count(functions), 1);
    assert_int_equal(fgprof_functions_get(functions, 0, &row, sizeof row), 0);
    assert_string_equal(row.name, "work");
    assert_string_equal(row.module, "/bin/app");
    assert_true(row.self_ns > 0);
    assert_int_equal(row.total_ns, row.self_ns);
    assert_int_equal(row.state_ns[FGPROF_STATE_WAITING], row.self_ns);
    assert_int_equal(row.state_ns[FGPROF_STATES_MAX - 1], 0);

    memset(&older_row, UNTOUCHED, sizeof older_row);
    assert_int_equal(fgprof_functions_get(functions, 0, &older_row, older), 0);
    assert_int_equal(older_row.total_ns, row.total_ns);
    ASSERT_UNTOUCHED(older_row, older);

    memset(&later_row, UNTOUCHED, sizeof later_row);
    assert_int_equal(fgprof_functions_get(functions, 0, &later_row.known, sizeof later_row), 0);
    assert_memory_equal(&later_row.known, &row, sizeof row);
    assert_null(later_row.added);

    assert_int_equal(fgprof_functions_get(functions, 1, &row, sizeof row), -ERANGE);
    fgprof_functions_free(functions);
    fgprof_profile_free(profile);
}

static void test_activities(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_world();
    struct fgprof_activity row, older_row;
    struct later_activity later_row;
    fgprof_activities *activities;
    const size_t older = offsetof(struct fgprof_activity, time_ns);
    assert_int_equal(fgprof_profile_activities(profile, &activities), 0);
    assert_int_equal(fgprof_activities_count(activities), 1);
    assert_int_equal(fgprof_activities_get(activities, 0, &row, sizeof row), 0);
    assert_int_equal(row.state, FGPROF_STATE_WAITING);
    assert_string_equal(row.syscall, "futex");
    assert_string_equal(row.function, "work");
    assert_true(row.time_ns > 0);

    memset(&older_row, UNTOUCHED, sizeof older_row);
    assert_int_equal(fgprof_activities_get(activities, 0, &older_row, older), 0);
    assert_string_equal(older_row.module, "/bin/app");
    ASSERT_UNTOUCHED(older_row, older);

    memset(&later_row, UNTOUCHED, sizeof later_row);
    assert_int_equal(fgprof_activities_get(activities, 0, &later_row.known, sizeof later_row), 0);
    assert_memory_equal(&later_row.known, &row, sizeof row);
    assert_int_equal(later_row.added, 0);

    assert_int_equal(fgprof_activities_get(activities, 1, &row, sizeof row), -ERANGE);
    fgprof_activities_free(activities);
    fgprof_profile_free(profile);
}

static void test_waits(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    struct fgprof_wait row, older_row;
    fgprof_waits *waits;
    const size_t older = offsetof(struct fgprof_wait, time_ns);
    make_wait(profile, make_function(profile, 0x1000, PROFILE_NO_MAPPING, "f", "", 0), NULL, 2);
    assert_int_equal(fgprof_profile_waits(profile, &waits), 0);
    assert_int_equal(fgprof_waits_count(waits), 1);
    assert_int_equal(fgprof_waits_get(waits, 0, &row, sizeof row), 0);
    assert_string_equal(row.resource, "mutex g_lock");
    assert_string_equal(row.owner, "boss");
    assert_true(row.time_ns > 0);

    memset(&older_row, UNTOUCHED, sizeof older_row);
    assert_int_equal(fgprof_waits_get(waits, 0, &older_row, older), 0);
    assert_string_equal(older_row.owner, "boss");
    ASSERT_UNTOUCHED(older_row, older);

    assert_int_equal(fgprof_waits_get(waits, 1, &row, sizeof row), -ERANGE);
    fgprof_waits_free(waits);
    fgprof_waits_free(NULL);
    fgprof_profile_free(profile);
}

static void test_empty_tables(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    struct fgprof_function function;
    struct fgprof_activity activity;
    fgprof_functions *functions;
    fgprof_activities *activities;
    assert_int_equal(fgprof_profile_functions(profile, NULL, 0, &functions), 0);
    assert_int_equal(fgprof_functions_count(functions), 0);
    assert_int_equal(fgprof_functions_get(functions, 0, &function, sizeof function), -ERANGE);
    assert_int_equal(fgprof_profile_activities(profile, &activities), 0);
    assert_int_equal(fgprof_activities_count(activities), 0);
    assert_int_equal(fgprof_activities_get(activities, 0, &activity, sizeof activity), -ERANGE);
    fgprof_functions_free(functions);
    fgprof_activities_free(activities);
    fgprof_functions_free(NULL);
    fgprof_activities_free(NULL);
    fgprof_profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary_of_this_header),
        cmocka_unit_test(test_summary_of_an_older_header),
        cmocka_unit_test(test_summary_of_a_later_header),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_activities),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_empty_tables),
    };
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
