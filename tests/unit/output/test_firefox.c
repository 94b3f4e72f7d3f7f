#include "make_profile.h"

#include <errno.h>
#include <stdio.h>
#include <zlib.h>

#define GAP TIMELINE_NO_SAMPLE

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

/* One thread reads, runs, is absent and reads again; another has no known functions. */
static void make_timelines(struct fgprof_profile *profile)
{
    static const uint32_t same_numbers[] = {0, 1, 2, 3};
    struct timeline_thread threads[] = {{.tid = 7, .begin_ns = 1000}, {.tid = 8, .begin_ns = 1500}};
    struct timeline_run runs[] = {
        {.time_ns = 100, .sample = 0, .thread = 0},  {.time_ns = 30, .sample = 1, .thread = 0},
        {.time_ns = 20, .sample = GAP, .thread = 0}, {.time_ns = 1, .sample = 0, .thread = 0},
        {.time_ns = 50, .sample = 2, .thread = 1},   {.time_ns = 5, .sample = 3, .thread = 1}};
    struct timeline timeline = {
        .is_wanted = true,
        .start_ns = 1000,
        .threads = threads,
        .thread_count = 2,
        .runs = runs,
        .run_count = sizeof runs / sizeof *runs,
    };
    uint32_t mapping = make_mapping(profile, 0x400000, "/bin/app", ""), process;
    struct made_line lines[] = {{"spin", "/src/a.c", 7, true}, {"work", "/src/a.c", 9, false}, {0}};
    uint32_t root = make_function(profile, 0x400010, mapping, "main", "/src/a.c", 3);
    uint32_t leaf = make_function(profile, 0x400020, mapping, "fetch", "", 0);
    uint32_t spin = make_location(profile, 0x400030, mapping, 0, lines);
    uint32_t unnamed = make_location(profile, 0x400040, mapping, 0, NULL);
    assert_int_equal(profile_add_process(profile, 7, "server", &process), 0);
    MAKE_SAMPLE(profile, "app", 7, 1, leaf, root);
    MAKE_SAMPLE(profile, "app", 7, 1, spin, root);
    MAKE_SAMPLE(profile, "app", 8, 1, unnamed);
    make_sample(profile, NULL, 0, "app", 8, 1);
    profile->samples[0].state = THREAD_SLEEPING;
    profile->samples[0].syscall_name = make_string(profile, "read");
    profile->samples[1].state = THREAD_RUNNING;
    profile->samples[2].state = THREAD_RUNNING;
    threads[0].name = threads[1].name = make_string(profile, "app");
    assert_int_equal(profile_set_timelines(profile, &timeline, same_numbers, &profile->strings), 0);
}

/* The output, decompressed. */
static char *written_json(const struct fgprof_profile *profile)
{
    size_t length;
    char *packed = written(profile, FGPROF_FIREFOX, &length), *json = calloc(1, 1 << 16);
    z_stream stream = {.next_in = (unsigned char *)packed,
                       .avail_in = (unsigned)length,
                       .next_out = (unsigned char *)json,
                       .avail_out = (1 << 16) - 1};
    assert_non_null(json);
    assert_int_equal(inflateInit2(&stream, 31), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    inflateEnd(&stream);
    free(packed);
    assert_brackets_match(json);
    return json;
}

/* The text after the first `key` in `json`. */
static const char *value(const char *json, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(json, quoted);
    assert_non_null(at);
    return at + strlen(quoted);
}

/* Cell number `row` of a column whose cells have no commas. */
static const char *cell(const char *table, const char *column, size_t row)
{
    const char *at = value(table, column) + 1;
    for (; row; row--)
        at = strchr(at, ',') + 1;
    return at;
}

static size_t number(const char *table, const char *column, size_t row)
{
    return strtoul(cell(table, column, row), NULL, 10);
}

static const char *thread_of(const char *json, unsigned tid)
{
    char key[32];
    snprintf(key, sizeof key, "\"tid\":%u,", tid);
    const char *at = strstr(json, key);
    assert_non_null(at);
    return at;
}

static void assert_column(const char *table, const char *column, const char *expected)
{
    const char *at = value(table, column);
    assert_memory_equal(at, expected, strlen(expected));
}

/* Checks the name of a frame of the thread's sample; `depth` is 0 for the leaf. */
static void assert_frame(const char *json, unsigned tid, size_t sample, unsigned depth,
                         const char *name)
{
    const char *stacks = value(json, "stackTable");
    size_t node = number(value(thread_of(json, tid), "samples"), "stack", sample);
    for (; depth; depth--)
        node = number(stacks, "prefix", node);
    size_t function = number(value(json, "frameTable"), "func", number(stacks, "frame", node));
    size_t string = number(value(json, "funcTable"), "name", function);
    const char *text = cell(json, "stringArray", string);
    assert_int_equal(*text, '"');
    assert_memory_equal(text + 1, name, strlen(name));
    assert_int_equal(text[1 + strlen(name)], '"');
}

static void test_frames(void **state)
{
    make_timelines(*state);
    char *json = written_json(*state);
    assert_frame(json, 7, 0, 0, "fetch");
    assert_frame(json, 7, 0, 1, "main");
    assert_frame(json, 7, 2, 0, "spin");
    assert_frame(json, 7, 2, 1, "work");
    assert_frame(json, 7, 2, 2, "main");
    assert_frame(json, 8, 0, 0, "[app]");
    assert_frame(json, 8, 2, 0, "[unknown]");
    free(json);
}

/* Each run has a sample at its beginning and one at its end. */
static void test_times(void **state)
{
    make_timelines(*state);
    char *json = written_json(*state);
    const char *samples = value(thread_of(json, 7), "samples");
    assert_column(samples, "length", "8,");
    assert_column(samples, "time",
                  "[0.000000,0.000100,0.000100,0.000130,0.000130,0.000150,0.000150,0.000151]");
    assert_column(samples, "weight",
                  "[0.000050,0.000050,0.000015,0.000015,0.000000,0.000000,0.000000,0.000001]");
    assert_column(samples, "threadCPUDelta", "[0,0,0,30,0,0,0,0]");
    assert_memory_equal(cell(samples, "stack", 4), "null,null,", 10);
    assert_column(value(thread_of(json, 8), "samples"), "threadCPUDelta", "[0,50,0,0]");
    free(json);
}

static void test_waits(void **state)
{
    make_timelines(*state);
    char *json = written_json(*state);
    const char *markers = value(thread_of(json, 7), "markers");
    assert_column(markers, "length", "2,");
    assert_column(markers, "startTime", "[0.000000,0.000150]");
    assert_column(markers, "endTime", "[0.000100,0.000151]");
    assert_column(markers, "data", "[{\"type\":\"wait\",\"call\":\"read\"},");
    assert_memory_equal(cell(json, "stringArray", number(markers, "name", 0)), "\"read\"", 6);
    free(json);
}

static void test_what_is_not_kept_is_a_gap(void **state)
{
    make_timelines(*state);
    assert_int_equal(fgprof_profile_set_kept(*state, FGPROF_KEPT_ON_CPU), 0);
    char *json = written_json(*state);
    const char *samples = value(thread_of(json, 7), "samples");
    assert_memory_equal(cell(samples, "stack", 0), "null,null,", 10);
    assert_frame(json, 7, 2, 0, "spin");
    assert_column(samples, "threadCPUDelta", "[0,0,0,30,0,0,0,0]");
    free(json);
}

/* The Firefox Profiler opens no file without threads. */
static void test_no_thread_was_sampled(void **state)
{
    struct fgprof_profile *profile = *state;
    profile->has_timelines = true;
    char *json = written_json(profile);
    assert_column(value(thread_of(json, 0), "samples"), "length", "0,");
    free(json);
}

static void test_no_timeline_no_file(void **state)
{
    int fd = file_of_text("");
    assert_int_equal(fgprof_profile_write(*state, FGPROF_FIREFOX, fd), -ENODATA);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_frames),
        TEST(test_times),
        TEST(test_waits),
        TEST(test_what_is_not_kept_is_a_gap),
        TEST(test_no_thread_was_sampled),
        TEST(test_no_timeline_no_file),
    };
    return cmocka_run_group_tests_name("output_firefox", tests, NULL, NULL);
}
