#include "make_profile.h"

#include <errno.h>

#define GAP TIMELINE_NO_SAMPLE

static const uint32_t same_numbers[] = {0, 1, 2, 3};

static int set_up(void **state)
{
    *state = make_profile();
    return 0;
}

static int tear_down(void **state)
{
    fgprof_profile_free(*state);
    return 0;
}

/* main calls read, in which it sleeps, and spin, which is inlined in "work". */
static void make_samples(struct fgprof_profile *profile)
{
    uint32_t mapping = make_mapping(profile, 0x400000, "/bin/app", "");
    struct made_line lines[] = {{"spin", "/src/a.c", 7, true}, {"work", "/src/a.c", 9, false}, {0}};
    uint32_t root = make_function(profile, 0x400010, mapping, "main", "/src/a.c", 3);
    uint32_t again = make_function(profile, 0x400020, mapping, "main", "/src/a.c", 4);
    uint32_t leaf = make_function(profile, 0x500010, PROFILE_NO_MAPPING, "</script>\"\n", "", 0);
    uint32_t spin = make_location(profile, 0x400030, mapping, 0, lines);
    uint32_t unnamed = make_location(profile, 0x400040, mapping, 0, NULL);
    MAKE_SAMPLE(profile, "app", 7, 1, leaf, root);
    MAKE_SAMPLE(profile, "app", 7, 1, spin, again);
    MAKE_SAMPLE(profile, "app", 7, 1, unnamed);
    profile->samples[0].state = THREAD_SLEEPING;
    profile->samples[0].syscall_name = make_string(profile, "read");
    profile->samples[1].state = THREAD_RUNNING;
    profile->samples[2].state = THREAD_RUNNABLE;
}

static void set_timelines(struct fgprof_profile *profile, struct timeline_thread *threads,
                          size_t thread_count, struct timeline_run *runs, size_t run_count)
{
    struct timeline timeline = {
        .is_wanted = true,
        .start_ns = 1000,
        .threads = threads,
        .thread_count = thread_count,
        .runs = runs,
        .run_count = run_count,
    };
    for (size_t i = 0; i < thread_count; i++)
        threads[i].name = make_string(profile, "app");
    assert_int_equal(profile_set_timelines(profile, &timeline, same_numbers, &profile->strings), 0);
}

static void make_timelines(struct fgprof_profile *profile)
{
    struct timeline_thread threads[] = {{.tid = 7, .begin_ns = 1000},
                                        {.tid = 8, .begin_ns = 1500, .lost_ns = 1}};
    struct timeline_run runs[] = {
        {.time_ns = 100, .sample = 0, .thread = 0}, {.time_ns = 50, .sample = 2, .thread = 1},
        {.time_ns = 30, .sample = 1, .thread = 0},  {.time_ns = 20, .sample = GAP, .thread = 0},
        {.time_ns = 5, .sample = 2, .thread = 1},   {.time_ns = 1, .sample = 0, .thread = 0}};
    make_samples(profile);
    set_timelines(profile, threads, 2, runs, sizeof runs / sizeof *runs);
}

#define HEAD                                                                                       \
    "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"                       \
    "\"exporter\":\"fgprof-c@0.1.0\",\n"                                                           \
    "\"shared\":{\"frames\":[\n"

static void test_threads_in_the_order_of_time(void **state)
{
    struct fgprof_profile *profile = *state;
    make_timelines(profile);
    assert_written(profile, FGPROF_SPEEDSCOPE,
                   HEAD "{\"name\":\"main\",\"file\":\"/src/a.c\"},\n"
                        "{\"name\":\"\\u003c/script>\\\"\\\\x0a\"},\n"
                        "{\"name\":\"work\",\"file\":\"/src/a.c\"},\n"
                        "{\"name\":\"spin\",\"file\":\"/src/a.c\"},\n"
                        "{\"name\":\"[app]\"}\n"
                        "]},\n"
                        "\"profiles\":[\n"
                        "{\"type\":\"sampled\",\"name\":\"app/7\",\"unit\":\"nanoseconds\","
                        "\"startValue\":0,\"endValue\":151,\n"
                        "\"samples\":[[0,1],[0,2,3],[],[0,1]],\n"
                        "\"weights\":[100,30,20,1]},\n"
                        "{\"type\":\"sampled\",\"name\":\"app/8 (ends early: timelines were full)\""
                        ",\"unit\":\"nanoseconds\",\"startValue\":500,\"endValue\":555,\n"
                        "\"samples\":[[4]],\n"
                        "\"weights\":[55]}\n"
                        "]}\n");
}

static void test_lines_and_states(void **state)
{
    struct fgprof_profile *profile = *state;
    make_timelines(profile);
    assert_int_equal(
        fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_LINES | FGPROF_FOLDED_STATE), 0);
    assert_written(profile, FGPROF_SPEEDSCOPE,
                   HEAD "{\"name\":\"main\",\"file\":\"/src/a.c\",\"line\":3},\n"
                        "{\"name\":\"\\u003c/script>\\\"\\\\x0a\"},\n"
                        "{\"name\":\"main\",\"file\":\"/src/a.c\",\"line\":4},\n"
                        "{\"name\":\"work\",\"file\":\"/src/a.c\",\"line\":9},\n"
                        "{\"name\":\"spin\",\"file\":\"/src/a.c\",\"line\":7},\n"
                        "{\"name\":\"[app]\"},\n"
                        "{\"name\":\"[read]\"},\n"
                        "{\"name\":\"[running]\"},\n"
                        "{\"name\":\"[runnable]\"}\n"
                        "]},\n"
                        "\"profiles\":[\n"
                        "{\"type\":\"sampled\",\"name\":\"app/7\",\"unit\":\"nanoseconds\","
                        "\"startValue\":0,\"endValue\":151,\n"
                        "\"samples\":[[0,1,6],[2,3,4,7],[],[0,1,6]],\n"
                        "\"weights\":[100,30,20,1]},\n"
                        "{\"type\":\"sampled\",\"name\":\"app/8 (ends early: timelines were full)\""
                        ",\"unit\":\"nanoseconds\",\"startValue\":500,\"endValue\":555,\n"
                        "\"samples\":[[5,8]],\n"
                        "\"weights\":[55]}\n"
                        "]}\n");
}

static void test_idle_threads_come_last(void **state)
{
    struct fgprof_profile *profile = *state;
    make_timelines(profile);
    for (size_t i = 0; i < profile->sample_count; i++)
        profile->samples[i].state = profile->samples[i].state == THREAD_RUNNING
                                        ? THREAD_SLEEPING
                                        : profile->samples[i].state;
    char *text = written(profile, FGPROF_SPEEDSCOPE, NULL);
    assert_true(strstr(text, "\"app/8 ") < strstr(text, "\"app/7\""));
    free(text);
}

static void test_what_is_not_kept_is_a_gap(void **state)
{
    struct fgprof_profile *profile = *state;
    make_timelines(profile);
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU), 0);
    char *text = written(profile, FGPROF_SPEEDSCOPE, NULL);
    assert_non_null(strstr(text, "\"samples\":[[],[0,2,3],[],[]],\n\"weights\":[100,30,20,1]}"));
    assert_non_null(strstr(text, "\"samples\":[[]],\n\"weights\":[55]}"));
    free(text);
}

/* Samples that became equal by naming, a run whose sample is unknown, and one without time. */
static void test_runs_are_joined(void **state)
{
    struct fgprof_profile *profile = *state;
    make_samples(profile);
    struct timeline_thread threads[] = {{.tid = 7, .begin_ns = 900}};
    struct timeline_run runs[] = {{.time_ns = 10, .sample = 0},
                                  {.time_ns = 20, .sample = 3},
                                  {.time_ns = 5, .sample = 99, .is_owed = true},
                                  {.time_ns = 6, .sample = GAP},
                                  {.time_ns = 7, .sample = 0}};
    const uint32_t numbers[] = {0, 1, 2, 0};
    struct timeline timeline = {.start_ns = 1000,
                                .threads = threads,
                                .thread_count = 1,
                                .runs = runs,
                                .run_count = sizeof runs / sizeof *runs};
    assert_int_equal(profile_set_timelines(profile, &timeline, numbers, &profile->strings), 0);
    assert_int_equal(profile->timelines[0].begin_ns, 0);
    assert_int_equal(profile->timelines[0].run_count, 3);
    assert_int_equal(profile->runs[0].time_ns, 30);
    assert_int_equal(profile->runs[1].sample, PROFILE_NO_SAMPLE);
    assert_int_equal(profile->runs[1].time_ns, 11);
    assert_int_equal(profile->runs[2].sample, 0);
    assert_int_equal(profile->runs[2].time_ns, 7);
}

static void test_no_timeline_no_file(void **state)
{
    struct fgprof_profile *profile = *state;
    int fd = file_of_text("");
    size_t length;
    assert_int_equal(fgprof_profile_write(profile, FGPROF_SPEEDSCOPE, fd), -ENODATA);
    free(contents_of(fd, &length));
    assert_int_equal(length, 0);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_threads_in_the_order_of_time),
        TEST(test_lines_and_states),
        TEST(test_idle_threads_come_last),
        TEST(test_what_is_not_kept_is_a_gap),
        TEST(test_runs_are_joined),
        TEST(test_no_timeline_no_file),
    };
    return cmocka_run_group_tests_name("output_speedscope", tests, NULL, NULL);
}
