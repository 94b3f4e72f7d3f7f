/* Spans that threads spent on what a query asks for. */
#include "make_profile.h"

#include <errno.h>

#define MS 1000000ull
#define START_NS (1000 * MS)

#define GAP TIMELINE_NO_SAMPLE

enum { STALL_A, STALL_B, OTHER, ON_LOCK, ON_FREE_LOCK, JOINING, ON_DISK, UNKNOWN, SAMPLES };

static uint32_t add_sample(struct fgprof_profile *profile, const uint32_t *locations, size_t depth,
                           enum thread_state state, uint32_t wait_plus_1)
{
    struct profile_sample sample = {
        .thread_name = make_string(profile, "io"),
        .tid = 7,
        .state = state,
        .count = profile->sample_count + 1, /* so that each has time */
        .wait_plus_1 = wait_plus_1,
    };
    uint32_t number;
    assert_int_equal(profile_add_stack(profile, locations, depth, &sample.stack), 0);
    assert_int_equal(profile_add_sample(profile, &sample, &number), 0);
    return number;
}

static uint32_t add_wait(struct fgprof_profile *profile, const char *kind, uint32_t owner)
{
    struct profile_wait wait = {
        .kind = make_string(profile, kind),
        .owner_process = owner,
        .owner_stack = PROFILE_NO_STACK,
    };
    uint32_t row;
    assert_int_equal(profile_add_wait(profile, &wait, &row), 0);
    return row + 1;
}

/* Makes the samples of the enum, for process "app" (70). */
static struct fgprof_profile *make_samples(void)
{
    struct fgprof_profile *profile = make_profile();
    struct made_line lines[] = {{"inlined", "", 0, true}, {"stall", "", 0, false}, {0}};
    uint32_t process;
    assert_int_equal(profile_add_process(profile, 70, "app", &process), 0);
    uint32_t root = make_function(profile, 0x10, PROFILE_NO_MAPPING, "main", "", 0);
    uint32_t stall = make_location(profile, 0x20, PROFILE_NO_MAPPING, 0, lines);
    uint32_t nap = make_function(profile, 0x30, PROFILE_NO_MAPPING, "nap", "", 0);
    uint32_t unnamed = make_location(profile, 0x40, PROFILE_NO_MAPPING, 0, NULL);
    uint32_t lock = add_wait(profile, "mutex", process);
    uint32_t free_lock = add_wait(profile, "mutex", PROFILE_NO_OWNER);
    uint32_t end = add_wait(profile, "thread", process);
    const uint32_t in_stall[] = {stall, root}, below[] = {unnamed, nap, stall, root};
    assert_int_equal(add_sample(profile, in_stall, 2, THREAD_RUNNING, 0), STALL_A);
    assert_int_equal(add_sample(profile, below, 4, THREAD_SLEEPING, 0), STALL_B);
    assert_int_equal(add_sample(profile, &root, 1, THREAD_RUNNING, 0), OTHER);
    assert_int_equal(add_sample(profile, &nap, 1, THREAD_SLEEPING, lock), ON_LOCK);
    assert_int_equal(add_sample(profile, &nap, 1, THREAD_SLEEPING, free_lock), ON_FREE_LOCK);
    assert_int_equal(add_sample(profile, &nap, 1, THREAD_SLEEPING, end), JOINING);
    assert_int_equal(add_sample(profile, &nap, 1, THREAD_UNINTERRUPTIBLE, 0), ON_DISK);
    assert_int_equal(add_sample(profile, &root, 0, THREAD_UNKNOWN, 0), UNKNOWN);
    profile->start_time_ns = START_NS;
    profile->summary.elapsed_ns = 440 * MS;
    return profile;
}

static void set_timelines(struct fgprof_profile *profile, struct timeline_run *runs, size_t count)
{
    static const uint32_t same_numbers[SAMPLES] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct timeline_thread threads[] = {
        {.tid = 7, .name = make_string(profile, "io-1"), .begin_ns = 50 * MS},
        {.tid = 8, .name = make_string(profile, "main"), .begin_ns = 50 * MS}};
    struct timeline timeline = {
        .is_wanted = true,
        .start_ns = 40 * MS,
        .threads = threads,
        .thread_count = 2,
        .runs = runs,
        .run_count = count,
    };
    assert_int_equal(profile_set_timelines(profile, &timeline, same_numbers, &profile->strings), 0);
}

struct expected {
    pid_t tid;
    uint64_t begin_ms, time_ms; /* since START_NS */
    const char *function;
};

static void assert_spans(const struct fgprof_profile *profile,
                         const struct fgprof_span_query *query, const struct expected *expected,
                         size_t count)
{
    fgprof_spans *spans;
    struct fgprof_span row;
    assert_int_equal(fgprof_profile_spans(profile, query, sizeof *query, &spans), 0);
    assert_int_equal(fgprof_spans_count(spans), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fgprof_spans_get(spans, i, &row, sizeof row), 0);
        assert_int_equal(row.pid, 70);
        assert_int_equal(row.tid, expected[i].tid);
        assert_string_equal(row.thread_name, expected[i].tid == 7 ? "io-1" : "main");
        assert_int_equal(row.begin_ns, START_NS + expected[i].begin_ms * MS);
        assert_int_equal(row.time_ns, expected[i].time_ms * MS);
        if (expected[i].function)
            assert_string_equal(row.function, expected[i].function);
        else
            assert_null(row.function);
    }
    assert_int_equal(fgprof_spans_get(spans, count, &row, sizeof row), -ERANGE);
    fgprof_spans_free(spans);
}

#define ASSERT_SPANS(profile, query, ...)                                                          \
    assert_spans(profile, query, (const struct expected[]){__VA_ARGS__},                           \
                 sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected))

static void assert_none(const struct fgprof_profile *profile, const struct fgprof_span_query *query)
{
    assert_spans(profile, query, NULL, 0);
}

/* Thread 7, from 10 ms on: 20 ms and 300 ms in stall, 5 ms elsewhere, 100 ms in stall. Thread 8:
 * 200 ms in stall. */
static struct fgprof_profile *make_stalls(void)
{
    struct fgprof_profile *profile = make_samples();
    struct timeline_run runs[] = {{.time_ns = 20 * MS, .sample = STALL_A, .thread = 0},
                                  {.time_ns = 200 * MS, .sample = STALL_A, .thread = 1},
                                  {.time_ns = 300 * MS, .sample = STALL_B, .thread = 0},
                                  {.time_ns = 5 * MS, .sample = OTHER, .thread = 0},
                                  {.time_ns = 100 * MS, .sample = STALL_A, .thread = 0}};
    set_timelines(profile, runs, sizeof runs / sizeof *runs);
    return profile;
}

static void test_in_a_function(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_stalls();
    struct fgprof_span_query query = {.function = "stall"};
    ASSERT_SPANS(profile, &query, {7, 10, 320, "nap"}, {8, 10, 200, "inlined"},
                 {7, 335, 100, "inlined"});
    query.function = "inlined"; /* gives the same spans */
    query.least_ns = 320 * MS;
    ASSERT_SPANS(profile, &query, {7, 10, 320, "nap"});
    query.least_ns++;
    assert_none(profile, &query);
    query = (struct fgprof_span_query){.function = "stal"};
    assert_none(profile, &query);
    query.function = "main";
    ASSERT_SPANS(profile, &query, {7, 10, 425, "nap"}, {8, 10, 200, "inlined"});
    fgprof_profile_free(profile);
}

static void test_threads_and_times(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_stalls();
    struct fgprof_span_query query = {.function = "stall", .thread_name = "^i.-[0-9]"};
    ASSERT_SPANS(profile, &query, {7, 10, 320, "nap"}, {7, 335, 100, "inlined"});
    query.last_ns = 110 * MS; /* reaches back to the end of the first span */
    ASSERT_SPANS(profile, &query, {7, 10, 320, "nap"}, {7, 335, 100, "inlined"});
    query.last_ns--;
    ASSERT_SPANS(profile, &query, {7, 335, 100, "inlined"});
    query.last_ns = 2000 * MS; /* longer than the recording */
    ASSERT_SPANS(profile, &query, {7, 10, 320, "nap"}, {7, 335, 100, "inlined"});
    query.thread_name = "^o";
    assert_none(profile, &query);
    query.thread_name = "(";
    fgprof_spans *spans;
    assert_int_equal(fgprof_profile_spans(profile, &query, sizeof query, &spans), -EINVAL);
    fgprof_profile_free(profile);
}

static void test_blocked(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_samples();
    struct timeline_run runs[] = {{.time_ns = 10 * MS, .sample = ON_FREE_LOCK, .thread = 0},
                                  {.time_ns = 20 * MS, .sample = ON_LOCK, .thread = 0},
                                  {.time_ns = 30 * MS, .sample = ON_DISK, .thread = 0},
                                  {.time_ns = 40 * MS, .sample = JOINING, .thread = 0},
                                  {.time_ns = 7 * MS, .sample = ON_DISK, .thread = 0},
                                  {.time_ns = 9 * MS, .sample = STALL_A, .thread = 0}};
    set_timelines(profile, runs, sizeof runs / sizeof *runs);
    struct fgprof_span_query query = {.is_blocked = true};
    ASSERT_SPANS(profile, &query, {7, 20, 50, "nap"}, {7, 110, 7, "nap"});
    query.function = "stall";
    assert_none(profile, &query);
    query = (struct fgprof_span_query){0};
    ASSERT_SPANS(profile, &query, {7, 10, 116, "nap"});
    fgprof_profile_free(profile);
}

/* Unknown time lies between the two parts of a span, or outside. */
static void test_what_is_not_known(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_samples();
    struct timeline_run runs[] = {{.time_ns = 1 * MS, .sample = GAP, .thread = 0},
                                  {.time_ns = 10 * MS, .sample = STALL_A, .thread = 0},
                                  {.time_ns = 2 * MS, .sample = GAP, .thread = 0},
                                  {.time_ns = 3 * MS, .sample = UNKNOWN, .thread = 0},
                                  {.time_ns = 20 * MS, .sample = STALL_A, .thread = 0},
                                  {.time_ns = 4 * MS, .sample = GAP, .thread = 0},
                                  {.time_ns = 5 * MS, .sample = OTHER, .thread = 0},
                                  {.time_ns = 30 * MS, .sample = STALL_A, .thread = 0},
                                  {.time_ns = 6 * MS, .sample = GAP, .thread = 0}};
    set_timelines(profile, runs, sizeof runs / sizeof *runs);
    const struct fgprof_span_query query = {.function = "stall"};
    ASSERT_SPANS(profile, &query, {7, 11, 35, "inlined"}, {7, 55, 30, "inlined"});
    fgprof_profile_free(profile);
}

static void test_without_timelines(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_samples();
    const struct fgprof_span_query query = {0};
    fgprof_spans *spans;
    assert_int_equal(fgprof_profile_spans(profile, &query, sizeof query, &spans), -ENODATA);
    set_timelines(profile, NULL, 0);
    assert_none(profile, &query);
    fgprof_profile_free(profile);
}

/* Callers with fewer or more fields. */
static void test_other_sizes(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_stalls();
    struct {
        struct fgprof_span_query query;
        uint64_t later;
    } longer = {.query = {.function = "stall", .last_ns = 1}, .later = 1};
    struct {
        struct fgprof_span span;
        uint64_t later;
    } row = {.later = 1};
    fgprof_spans *spans;
    size_t without_last = offsetof(struct fgprof_span_query, last_ns);
    assert_int_equal(fgprof_profile_spans(profile, &longer.query, sizeof longer, &spans), 0);
    assert_int_equal(fgprof_spans_count(spans), 0);
    fgprof_spans_free(spans);
    assert_int_equal(fgprof_profile_spans(profile, &longer.query, without_last, &spans), 0);
    assert_int_equal(fgprof_spans_count(spans), 3);
    assert_int_equal(fgprof_spans_get(spans, 0, &row.span, sizeof row), 0);
    assert_int_equal(row.span.tid, 7);
    assert_int_equal(row.later, 0);
    fgprof_spans_free(spans);
    fgprof_spans_free(NULL);
    fgprof_profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_a_function),     cmocka_unit_test(test_threads_and_times),
        cmocka_unit_test(test_blocked),           cmocka_unit_test(test_what_is_not_known),
        cmocka_unit_test(test_without_timelines), cmocka_unit_test(test_other_sizes),
    };
    return cmocka_run_group_tests_name("spans", tests, NULL, NULL);
}
