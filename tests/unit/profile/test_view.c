#include "make_profile.h"
#include "profile/view.h"

#include <errno.h>

/* Two threads named "pool" and one named "app", in the same function. Each "pool" thread has two
 * samples: on the CPU and asleep. */
static int set_up(void **state)
{
    struct fgprof_profile *profile = make_profile();
    uint32_t location = make_function(profile, 1, PROFILE_NO_MAPPING, "work", "", 0);
    static const struct {
        const char *thread;
        uint32_t tid;
        enum thread_state state;
        uint64_t count;
        bool never_moved;
    } rows[] = {
        {"pool", 11, THREAD_RUNNING, 1, false},      {"app", 10, THREAD_SLEEPING, 20, true},
        {"pool", 12, THREAD_RUNNING, 300, false},    {"pool", 11, THREAD_SLEEPING, 4000, true},
        {"pool", 12, THREAD_SLEEPING, 50000, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct profile_sample sample = {.thread_name = make_string(profile, rows[i].thread),
                                        .tid = rows[i].tid,
                                        .goroutine = rows[i].tid + 100,
                                        .state = rows[i].state,
                                        .count = rows[i].count,
                                        .never_moved = rows[i].never_moved,
                                        .time_ns = rows[i].count * 7,
                                        .sleeps = rows[i].count * 3};
        assert_int_equal(profile_add_stack(profile, &location, 1, &sample.stack), 0);
        assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
    }
    *state = profile;
    return 0;
}

static int tear_down(void **state)
{
    fgprof_profile_free(*state);
    return 0;
}

static void assert_counts(const struct fgprof_profile *profile, const uint64_t *counts,
                          size_t count)
{
    struct profile_view view;
    assert_int_equal(profile_view_make(profile, false, &view), 0);
    assert_int_equal(view.sample_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(view.samples[i].count, counts[i]);
        assert_int_equal(view.samples[i].time_ns, counts[i] * 7);
        assert_int_equal(view.samples[i].sleeps, counts[i] * 3);
        assert_int_equal(!view.samples[i].tid, profile->threads == FGPROF_THREADS_BY_NAME);
        assert_int_equal(!view.samples[i].goroutine, profile->threads == FGPROF_THREADS_BY_NAME);
    }
    profile_view_free(&view);
    assert_null(view.samples);
}

#define ASSERT_COUNTS(profile, ...)                                                                \
    assert_counts(profile, (const uint64_t[]){__VA_ARGS__},                                        \
                  sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))

static void test_all_is_written_as_recorded(void **state)
{
    ASSERT_COUNTS(*state, 1, 20, 300, 4000, 50000);
}

static void test_threads_of_equal_name_are_joined(void **state)
{
    struct fgprof_profile *profile = *state;
    assert_int_equal(fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME), 0);
    ASSERT_COUNTS(profile, 301, 20, 54000);
    assert_int_equal(fgprof_profile_set_threads(profile, (enum fgprof_threads)2), -EINVAL);
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU), 0);
    ASSERT_COUNTS(profile, 301);
    /* The profile itself is unchanged. */
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_ALL), 0);
    assert_int_equal(fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_ID), 0);
    ASSERT_COUNTS(profile, 1, 20, 300, 4000, 50000);
}

/* Joined threads have never moved if none of them has moved. */
static void test_who_never_moved(void **state)
{
    static const bool apart[] = {false, true, false, true, false}, joined[] = {false, true, false};
    struct fgprof_profile *profile = *state;
    struct profile_view view;
    assert_int_equal(profile_view_make(profile, false, &view), 0);
    for (size_t i = 0; i < view.sample_count; i++)
        assert_int_equal(view.samples[i].never_moved, apart[i]);
    profile_view_free(&view);
    assert_int_equal(fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME), 0);
    assert_int_equal(profile_view_make(profile, false, &view), 0);
    assert_int_equal(view.sample_count, 3);
    for (size_t i = 0; i < view.sample_count; i++)
        assert_int_equal(view.samples[i].never_moved, joined[i]);
    profile_view_free(&view);
}

static void test_what_is_not_kept_is_not_there(void **state)
{
    struct fgprof_profile *profile = *state;
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU), 0);
    ASSERT_COUNTS(profile, 1, 300);
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_OFF_CPU), 0);
    ASSERT_COUNTS(profile, 20, 4000, 50000);
}

static void test_the_writers_write_the_view(void **state)
{
    struct fgprof_profile *profile = *state;
    fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_THREADS);
    assert_written(profile, FGPROF_FOLDED,
                   "app/10;work 20\npool/11;work 4001\npool/12;work 50300\n");
    fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME);
    assert_written(profile, FGPROF_FOLDED, "app;work 20\npool;work 54301\n");
    char *text = written(profile, FGPROF_TEXT, NULL);
    assert_non_null(strstr(text, "54000 @ 0x2\n"));
    assert_null(strstr(text, "\"tid\""));
    free(text);
}

static void assert_times(const struct fgprof_profile *profile, unsigned times, bool tells_threads,
                         const uint64_t *counts, size_t count)
{
    struct profile_view view;
    assert_int_equal(profile_view_make_times(profile, times, tells_threads, &view), 0);
    assert_int_equal(view.sample_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(view.samples[i].count, counts[i]);
        assert_int_equal(view.samples[i].time_ns, counts[i] * 7);
        assert_int_equal(view.samples[i].sleeps, counts[i] * 3);
        assert_int_equal(!view.samples[i].thread_name, !tells_threads);
    }
    profile_view_free(&view);
}

#define ASSERT_TIMES(profile, times, tells_threads, ...)                                           \
    assert_times(profile, times, tells_threads, (const uint64_t[]){__VA_ARGS__},                   \
                 sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))

static void test_times(void **state)
{
    struct fgprof_profile *profile = *state;
    ASSERT_TIMES(profile, FGPROF_TIME_WALL, false, 54321);
    ASSERT_TIMES(profile, FGPROF_TIME_CPU, false, 301);
    ASSERT_TIMES(profile, FGPROF_TIME_OFF_CPU, false, 54020);
    ASSERT_TIMES(profile, FGPROF_TIME_WALL | FGPROF_TIME_CPU, false, 301, 54020);
    ASSERT_TIMES(profile, FGPROF_TIME_WALL, true, 4001, 20, 50300);
    assert_int_equal(fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME), 0);
    ASSERT_TIMES(profile, FGPROF_TIME_WALL, true, 54301, 20);
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU), 0);
    ASSERT_TIMES(profile, FGPROF_TIME_WALL, false, 301);
}

static void test_places_of_owners(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    struct profile_view view;
    uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "f", "", 0);
    make_wait(profile, place, NULL, 2);
    make_wait(profile, place, &place, 3);
    assert_int_equal(profile_view_make(profile, false, &view), 0);
    assert_int_equal(view.sample_count, 1);
    assert_int_equal(view.samples[0].count, 5);
    profile_view_free(&view);
    assert_int_equal(profile_view_make(profile, true, &view), 0);
    assert_int_equal(view.sample_count, 2);
    assert_int_equal(view.samples[1].count, 3);
    profile_view_free(&view);
    fgprof_profile_free(profile);
}

static void test_a_profile_without_samples(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    struct profile_view view;
    assert_int_equal(profile_view_make(profile, false, &view), 0);
    assert_int_equal(view.sample_count, 0);
    profile_view_free(&view);
    fgprof_profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_is_written_as_recorded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_threads_of_equal_name_are_joined, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_never_moved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_not_kept_is_not_there, set_up, tear_down),
        cmocka_unit_test(test_places_of_owners),
        cmocka_unit_test_setup_teardown(test_the_writers_write_the_view, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_times, set_up, tear_down),
        cmocka_unit_test(test_a_profile_without_samples),
    };
    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
