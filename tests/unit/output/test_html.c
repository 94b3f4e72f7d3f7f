#include "make_profile.h"

#include <errno.h>
#include <stdio.h>

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

#define BEGIN "<script type=\"application/json\" id=\"profile\">"
#define END "</script>"

/* The profile data in `page`, which is freed. The caller frees the result. */
static char *data_within(char *page)
{
    char *begin = strstr(page, BEGIN);
    assert_non_null(begin);
    begin += strlen(BEGIN);
    char *end = strstr(begin, END);
    assert_non_null(end);
    char *data = strndup(begin, (size_t)(end - begin));
    assert_non_null(data);
    assert_brackets_match(data);
    free(page);
    return data;
}

static char *data_of(const struct fgprof_profile *profile)
{
    return data_within(written(profile, FGPROF_HTML, NULL));
}

/* Checks that the page's data contains this text. */
static void assert_data(const struct fgprof_profile *profile, const char *expected)
{
    char *data = data_of(profile);
    if (!strstr(data, expected))
        assert_string_equal(data, expected); /* shows both */
    free(data);
}

static void test_golden_data(void **state)
{
    struct fgprof_profile *profile = *state;
    struct made_line inlined[] = {
        {"inner", "/src/a.c", 3, true}, {"outer", "/src/a.c", 9, false}, {0}};
    uint32_t app = make_mapping(profile, 0x400000, "/opt/app", "aabb");
    uint32_t leaf = make_location(profile, 0x401010, app, 0x10, inlined);
    uint32_t unnamed = make_location(profile, 0x402000, app, 0, NULL);
    MAKE_SAMPLE(profile, "worker", 77, 5, leaf, unnamed);
    make_state(profile, unnamed, THREAD_SLEEPING, "futex", "", 2);
    profile->summary = (struct fgprof_summary){
        .elapsed_ns = 1000, .samples = 7, .ticks_late = 1, .observations_put_off = 3};
    profile->start_time_ns = 5;
    profile->period_ns = 10101010;
    assert_int_equal(fgprof_profile_set_command(profile, "fgprof-c attach -p 1"), 0);
    char *data = data_of(profile);
    assert_string_equal(
        data,
        "{\"version\":1,\"command\":\"fgprof-c attach -p 1\","
        "\"recorded_by\":\"fgprof-c attach -p 1\",\"start_time_ns\":5,"
        "\"elapsed_ns\":1000,\"period_ns\":10101010,"
        "\"summary\":{\"ticks_planned\":0,\"ticks_taken\":0,\"ticks_late\":1,\"threads_seen\":0,"
        "\"samples\":7,\"samples_cut\":0,\"samples_unnamed\":0,\"samples_not_captured\":0,"
        "\"samples_assumed\":0,\"samples_thinned\":0,\"observations_put_off\":3,"
        "\"kernel_samples\":0,\"threads_kernel_sampled\":0,"
        "\"modules_unreadable\":0,\"pauses\":0,"
        "\"pause_median_ns\":0,\"pause_p99_ns\":0,\"pause_max_ns\":0},\"kept\":\"all\","
        "\"has_elapsed\":false,\"shows_elapsed\":false,\"parallel\":[],"
        "\"states\":[\"unknown\",\"running\",\"runnable\",\"sleeping\",\"uninterruptible\","
        "\"stopped\"],\"processes\":[],"
        "\"strings\":[\"\",\"/opt/app\",0,\"inner\",\"/src/a.c\",\"outer\",\"worker\",\"app\","
        "\"futex\"],"
        "\"locations\":[[1,0,3,4,3,5,4,9],[1,0,\"[app]\"]],"
        "\"stacks\":[[0,1],[1]],"
        "\"samples\":[[0,6,77,0,0,0,5,50505050,0],[1,7,0,3,8,0,2,20202020,0]],"
        "\"places\":[0,0],\"findings\":[],\"idle\":[[0,7,0]]}");
    free(data);
}

static void test_where_threads_come_from(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "f", "", 0);
    MAKE_SAMPLE(profile, "worker", 77, 1, place);
    make_birth(profile, 77, "main/70", "start_pool");
    make_birth(profile, 78, "", "reader");
    uint32_t maker = profile->births[0].maker;
    char expected[80];
    snprintf(expected, sizeof expected, "\"births\":[[77,%u,%u],[78,0,%u]],\"samples\"", maker,
             maker + 1, maker + 2);
    assert_data(profile, expected);
    assert_data(profile, "\"main/70\",\"start_pool\",\"reader\"]");
    assert_int_equal(fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME), 0);
    char *data = data_of(profile);
    assert_null(strstr(data, "births"));
    free(data);
}

/* Goroutine 7 is not thread 7, even if both have the name of the process. */
static void test_ids_of_goroutines(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "f", "", 0);
    MAKE_SAMPLE(profile, "server", 7, 1, place);
    struct profile_sample parked = {.stack = profile->samples[0].stack,
                                    .thread_name = make_string(profile, "server"),
                                    .tid = 7,
                                    .state = THREAD_SLEEPING,
                                    .syscall_name = make_string(profile, "chan receive"),
                                    .is_goroutine = true,
                                    .never_moved = true,
                                    .count = 2,
                                    .time_ns = 20};
    assert_int_equal(profile_add_sample(profile, &parked, NULL), 0);
    assert_data(profile, "\"samples\":[[0,2,7,0,0,0,1,10101010,0],[0,2,-7,3,3,0,2,20,0]],");
    assert_data(profile, "\"idle\":[[0,2,-7]]}");
    assert_int_equal(fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME), 0);
    assert_data(profile, "[0,2,0,3,3,0,2,20,0]],");
}

static void test_label_sets(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "f", "", 0);
    char expected[80];
    for (uint32_t i = 0; i < 2; i++)
        MAKE_SAMPLE(profile, "worker", 77 + i, 1, place);
    MAKE_LABELS(profile, 0, "route", "/a");
    MAKE_LABELS(profile, 1, "route", "/b", "tenant", "t");
    const struct profile_label *labels = profile->labels;
    snprintf(expected, sizeof expected, "\"labels\":[[%u,%u],[%u,%u,%u,%u]],\"", labels[0].key,
             labels[0].value, labels[1].key, labels[1].value, labels[2].key, labels[2].value);
    assert_data(profile, expected);
}

static void test_elapsed_time(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "f", "", 0);
    make_state(profile, place, THREAD_SLEEPING, "", "", 2);
    int fd = file_of_text("");
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_ELAPSED), 0);
    assert_int_equal(fgprof_profile_write(profile, FGPROF_HTML, fd), -ENODATA);
    close(fd);
    make_elapsed(profile);
    assert_data(profile,
                "\"has_elapsed\":true,\"shows_elapsed\":true,\"parallel\":[20000000,10000000]");
    assert_data(profile, "\"samples\":[[0,2,0,3,0,0,2,20202020,0,10000000],"
                         "[1,0,0,3,0,0,0,0,0,20000000]],"
                         "\"places\":[0,0],\"findings\":[[\"thread \\\"app\\\" waits 0.02 s in "
                         "sleeping here:\",\"f\",\"f\"]],"
                         "\"idle\":[]}");
}

/* Times are rounded to grains of 2 ns: a run that is too short is left out, and the runs around it
 * are joined. */
static void test_when_threads_were_where(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "f", "", 0);
    make_state(profile, place, THREAD_SLEEPING, "", "", 2);
    make_state(profile, place, THREAD_RUNNING, "", "", 3);
    const struct profile_run runs[] = {{0, 20}, {1, 1},  {0, 20}, {PROFILE_NO_SAMPLE, 300},
                                       {1, 1},  {1, 50}, {0, 10}, {0, UINT64_MAX}};
    const struct profile_timeline timelines[] = {
        {.begin_ns = 10, .run_count = 4},
        {.begin_ns = 10, .first_run = 4, .run_count = 1},
        {.begin_ns = 1000, .first_run = 5, .run_count = 3},
    };
    profile->summary.elapsed_ns = 1u << 20;
    profile->timelines = malloc(sizeof timelines);
    profile->runs = malloc(sizeof runs);
    memcpy(profile->timelines, timelines, sizeof timelines);
    memcpy(profile->runs, runs, sizeof runs);
    profile->timeline_count = sizeof timelines / sizeof *timelines;
    profile->run_count = sizeof runs / sizeof *runs;
    char *data = data_of(profile);
    assert_null(strstr(data, "timelines"));
    free(data);
    profile->has_timelines = true;
    /* 0,1,20: sample 0; 1,0,150: absent. 0,2,25: sample 1; 1,1,523763: sample 0, to the end. */
    assert_data(profile, "\"timelines\":{\"grain_ns\":2,\"ended_early\":false,"
                         "\"threads\":[[5,2],[500,2]],\"runs\":\"AAEUAQCWAQACGQEB8/sf\"}");
    profile->summary.timeline_lost_ns = 1;
    fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU); /* renumbered to sample 0 */
    assert_data(profile, "\"timelines\":{\"grain_ns\":2,\"ended_early\":true,"
                         "\"threads\":[[5,1],[500,2]],\"runs\":\"AACqAQABGQEA8/sf\"}");
}

static void test_only_kept_samples_are_written(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "f", "", 0);
    make_state(profile, place, THREAD_SLEEPING, "", "", 2);
    make_state(profile, place, THREAD_RUNNING, "", "", 3);
    fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU);
    assert_data(profile, "\"kept\":\"on-cpu\"");
    assert_data(profile, "\"samples\":[[0,2,0,1,0,0,3,30303030,0]],\"places\":[0],\"findings\":");
}

/* Names come from the target: they must not end the script around them, or the JSON string. */
static void test_names_are_escaped(void **state)
{
    static const struct {
        const char *name, *written;
    } cases[] = {
        {"</script><img onerror=x>", "\\u003c/script>\\u003cimg onerror=x>"},
        {"<!--<script>", "\\u003c!--\\u003cscript>"},
        {"a\"b\\c", "a\\\"b\\\\c"},
        {"a&lt;b", "a&lt;b"},
        {"line\nend\x01", "line\\\\x0aend\\\\x01"},
        {"a\xe2\x80\xa8"
         "b\xe2\x80\xa9",
         "a\xe2\x80\xa8"
         "b\xe2\x80\xa9"},
        {"\xe2\x82\xac", "\xe2\x82\xac"}, /* the euro sign */
        {"\xff\xe2\x80"
         "a\xed\xa0\x80",
         "\\\\xff\\\\xe2\\\\x80a\\\\xed\\\\xa0\\\\x80"},
    };
    struct fgprof_profile *profile = *state;
    char expected[1024] = "\"strings\":[\"\"", quoted[128];
    uint32_t locations[sizeof cases / sizeof *cases];
    size_t count = sizeof cases / sizeof *cases;
    for (size_t i = 0; i < count; i++) {
        locations[i] = make_function(profile, 0x1000 + i, PROFILE_NO_MAPPING, cases[i].name, "", 0);
        snprintf(quoted, sizeof quoted, ",\"%s\"", cases[i].written);
        strcat(expected, quoted);
    }
    make_sample(profile, locations, count, "t</script>", 0, 1);
    strcat(expected, ",\"t\\u003c/script>\"]");
    assert_data(profile, expected);
    /* The page's own scripts: two end tags. */
    char *page = written(profile, FGPROF_HTML, NULL), *at = page;
    int ends = 0;
    while ((at = strstr(at, "</script"))) {
        ends++;
        at++;
    }
    assert_int_equal(ends, 2);
    free(page);
}

static void test_a_command_is_escaped_and_may_be_missing(void **state)
{
    assert_data(*state, "\"command\":\"\",");
    assert_int_equal(fgprof_profile_set_command(*state, "x '</script>'"), 0);
    assert_data(*state, "\"command\":\"x '\\u003c/script>'\",");
    assert_int_equal(fgprof_profile_set_command(*state, NULL), 0);
    assert_data(*state, "\"command\":\"\",");
}

/* All parts are there, in order, and nothing refers to another file. */
static void test_page_is_whole_and_alone(void **state)
{
    char *page = written(*state, FGPROF_HTML, NULL);
    const char *parts[] = {"<!DOCTYPE html>", "<style>",   "--ground", BEGIN,
                           "class Tree ",     "new Page(", "</html>\n"};
    const char *at = page;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        at = strstr(at, parts[i]);
        assert_non_null(at);
    }
    const char *others[] = {"<link",  " src=",       "@import",   "url(",      "http:",
                            "https:", "/* page.css", "<!-- data", "/* scripts"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_null(strstr(page, others[i]));
    free(page);
}

static char *written_difference(const struct fgprof_profile *before,
                                const struct fgprof_profile *after, bool is_normalized)
{
    int fd = file_of_text("");
    assert_int_equal(fgprof_profile_write_difference(before, after, FGPROF_HTML, is_normalized, fd),
                     0);
    char *text = contents_of(fd, NULL);
    close(fd);
    return text;
}

/* Cuts off the part of the data that a difference leaves out. */
static void cut_report(char *data)
{
    char *report = strstr(data, ",\"places\":");
    assert_non_null(report);
    strcpy(report, "}");
}

/* The page has both profiles' data, `before` inside `after`, and whether they are normalized. */
static void test_a_difference_has_both(void **state)
{
    struct fgprof_profile *before = make_profile(), *after = *state;
    make_state(before, make_function(before, 0x1000, PROFILE_NO_MAPPING, "</script>", "", 0),
               THREAD_RUNNING, "", "", 2);
    make_state(after, make_function(after, 0x2000, PROFILE_NO_MAPPING, "new", "", 0),
               THREAD_RUNNING, "", "", 3);
    char *of_before = data_of(before), *of_after = data_of(after), *expected, *data;
    cut_report(of_before);
    cut_report(of_after);
    for (int is_normalized = 0; is_normalized <= 1; is_normalized++) {
        assert_true(asprintf(&expected, "%.*s,\"is_normalized\":%s,\"before\":%s}",
                             (int)strlen(of_after) - 1, of_after, is_normalized ? "true" : "false",
                             of_before) > 0);
        data = data_within(written_difference(before, after, is_normalized));
        assert_string_equal(data, expected);
        free(expected);
        free(data);
    }
    assert_non_null(strstr(of_before, "\\u003c/script>"));
    assert_int_equal(fgprof_profile_write_difference(before, after, FGPROF_TEXT, false, 1),
                     -EINVAL);
    free(of_before);
    free(of_after);
    fgprof_profile_free(before);
}

/* A profile has processes, and each sample belongs to one of them. */
static void test_processes(void **state)
{
    struct fgprof_profile *profile = *state;
    make_two_processes(profile, make_function(profile, 0x1000, PROFILE_NO_MAPPING, "f", "", 0));
    assert_data(profile, "\"processes\":[[70,3],[71,4]],"
                         "\"strings\":[\"\",\"f\",\"app\",\"make\",\"a;b c\"]");
    assert_data(profile,
                ",2,0,0],[0,2,0,0,0,0,3,0,1]],\"places\":[0],\"findings\":[],\"idle\":[]}");
    /* A process may have given itself a title. */
    assert_int_equal(
        strings_intern(&profile->strings, "shop: worker 3", &profile->processes[1].title), 0);
    assert_data(profile, "\"processes\":[[70,3],[71,4,5]],");
    assert_data(profile, ",\"shop: worker 3\"]");
}

/* The flags 64 and 256 of a location: see page/data.js. */
static void test_what_is_not_the_programs_own_code(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t libc = make_mapping(profile, 0x1000, "/lib/libc.so.6", "");
    uint32_t app = make_mapping(profile, 0x9000, "/opt/app", "");
    uint32_t start = make_function(profile, 0x1010, libc, "start_thread", "", 0);
    uint32_t wait = make_function(profile, 0x1020, libc, "poll", "", 0);
    uint32_t own = make_function(profile, 0x9010, app, "serve", "", 0);
    MAKE_SAMPLE(profile, "worker", 77, 1, wait, own, start);
    char *data = data_of(profile);
    unsigned module, flags[3];
    const char *at = strstr(data, "\"locations\":[");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"locations\":[[%u,%u,%*u,%*u,%*u],[%u,%u,%*u,%*u,%*u],[%u,%u,",
                            &module, &flags[0], &module, &flags[1], &module, &flags[2]),
                     6);
    assert_int_equal(flags[0], 64 | 256);
    assert_int_equal(flags[1], 256);
    assert_int_equal(flags[2], 0);
    free(data);
}

/* What threads wait for is in a table of its own. Samples whose owners were at different places
 * stay separate, and a row without an owner is short. */
static void test_waits(void **state)
{
    struct fgprof_profile *profile = *state;
    struct profile_wait wait = {.kind = make_string(profile, "mutex"),
                                .resource = make_string(profile, "mutex </script>"),
                                .owner_process = PROFILE_NO_OWNER,
                                .owner_stack = PROFILE_NO_STACK};
    uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "f", "", 0);
    uint32_t owner = make_function(profile, 0x2000, PROFILE_NO_MAPPING, "g", "", 0), row;
    make_state(profile, place, THREAD_RUNNING, "", "", 1);
    assert_int_equal(profile_add_wait(profile, &wait, &row), 0);
    wait = (struct profile_wait){.kind = wait.kind,
                                 .resource = wait.resource,
                                 .owner_name = make_string(profile, "boss"),
                                 .owner_tid = 7,
                                 .owner_stack = PROFILE_NO_STACK,
                                 .owner_wait_plus_1 = row + 1};
    assert_int_equal(profile_add_wait(profile, &wait, &row), 0);
    make_wait(profile, place, NULL, 2);
    make_wait(profile, place, &owner, 3);
    profile->samples[1].wait_plus_1 = row + 1;
    fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_ID);
    assert_data(profile,
                "\"strings\":[\"\",\"mutex\",\"mutex \\u003c/script>\",\"f\",\"g\",\"app\","
                "\"boss\",\"mutex g_lock\",\"futex\"]");
    assert_data(profile,
                "\"samples\":[[0,5,0,1,0,0,1,10101010,0],[0,5,0,3,8,0,2,20202020,0],"
                "[0,5,0,3,8,0,3,30303030,0]],"
                "\"waits\":[[1,2],[1,2,0,6,7,0,0],[1,2,0,6,7,0,1],[1,7,0,6,0,0,0],"
                "[1,7,0,6,0,2,0]],\"sample_waits\":[0,3,5],\"places\":[0,0],\"findings\":");
    fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME);
    assert_data(profile, "[1,2,0,6,0,0,1]");
    fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU);
    assert_data(profile, "\"samples\":[[0,5,0,1,0,0,1,10101010,0]],\"places\":[0,0],\"findings\":");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_golden_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_where_threads_come_from, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ids_of_goroutines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_label_sets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_elapsed_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_when_threads_were_where, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_kept_samples_are_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_are_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_command_is_escaped_and_may_be_missing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_page_is_whole_and_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_difference_has_both, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_processes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_not_the_programs_own_code, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_waits, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
