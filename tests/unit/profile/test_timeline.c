/* The ticks of threads: known and inferred samples. */
#include "make_profile.h"

#include <stdio.h>

#define ASLEEP 0 /* samples */
#define ELSEWHERE 1
#define RUNNING 2
#define AT_WORK 3
static const uint32_t samples[] = {ASLEEP, ELSEWHERE, RUNNING, AT_WORK};

static struct fgprof_profile *profile;
static struct timeline timeline;
static struct strings strings;
static struct tick_cursor cursor;

static int set_up(void **state)
{
    (void)state;
    profile = make_profile();
    timeline = (struct timeline){.is_wanted = true, .runs_max = 9, .ticks.runs_max = 99};
    cursor = (struct tick_cursor){0};
    timeline.threads = calloc(2, sizeof *timeline.threads);
    if (!timeline.threads || strings_init(&strings))
        return -1;
    timeline.thread_count = timeline.thread_capacity = 2;
    timeline.threads[0] = (struct timeline_thread){.tid = 7};
    timeline.threads[1] = (struct timeline_thread){.tid = 8};
    struct profile_wait wait = {.owner_process = PROFILE_NO_OWNER,
                                .owner_stack = PROFILE_NO_STACK,
                                .waker = make_string(profile, "timer")};
    uint32_t row;
    return profile_add_wait(profile, &wait, &row);
}

static int tear_down(void **state)
{
    (void)state;
    profile_free(profile);
    timeline_free(&timeline);
    strings_free(&strings);
    return 0;
}

static void sleeps(uint32_t sample, uint64_t last_tick, uint64_t ticks)
{
    tick_runs_add(&timeline.ticks, &cursor, 0, sample, last_tick, ticks, last_tick);
}

static void runs(uint32_t sample, uint64_t tick)
{
    tick_runs_add_running(&timeline.ticks, 0, sample, tick);
}

/* Checks "sample ticks; ...", where a question mark means inferred. */
static void assert_ticks(uint32_t first_tick, const char *expected)
{
    char text[256] = "";
    assert_int_equal(profile_set_timelines(profile, &timeline, samples, &strings), 0);
    const struct profile_timeline *row = &profile->timelines[0];
    assert_int_equal(row->first_tick, first_tick);
    for (size_t i = 0; i < row->tick_run_count; i++) {
        const struct profile_tick_run *run = &profile->tick_runs[row->first_tick_run + i];
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d %u%s", i ? "; " : "",
                 (int)run->sample, run->ticks, run->is_inferred ? "?" : "");
    }
    assert_string_equal(text, expected);
}

static void test_what_lies_between_waits(void **state)
{
    (void)state;
    sleeps(ASLEEP, 5, 3);
    runs(RUNNING, 6);
    sleeps(ELSEWHERE, 8, 1);
    assert_ticks(3, "0 3; 2 2; 1 1");
}

/* The order in which they are added does not matter. */
static void test_any_order(void **state)
{
    (void)state;
    runs(RUNNING, 7);
    sleeps(ELSEWHERE, 8, 1);
    runs(AT_WORK, 9);
    sleeps(ASLEEP, 6, 2);
    assert_ticks(5, "0 2; 2 1; 1 1; 3 1");
}

static void test_the_nearest_sample_stands_for_others(void **state)
{
    (void)state;
    sleeps(ASLEEP, 1, 1);
    runs(RUNNING, 4);
    runs(AT_WORK, 9);
    sleeps(ASLEEP, 14, 2);
    assert_ticks(1, "0 1; 2 1?; 2 3; 2 1?; 3 1?; 3 3; 3 2?; 0 2");
}

static void test_a_thread_that_was_never_sampled(void **state)
{
    (void)state;
    sleeps(ASLEEP, 1, 1);
    sleeps(ASLEEP, 4, 1);
    assert_ticks(1, "0 1; -1 2; 0 1");
}

static void test_a_wait_in_an_unknown_place(void **state)
{
    (void)state;
    struct tick_cursor other = {0};
    sleeps(ASLEEP, 2, 1);
    tick_runs_add(&timeline.ticks, &other, 0, TIMELINE_NO_SAMPLE, 4, 2, 0);
    runs(RUNNING, 4);
    sleeps(ASLEEP, 5, 1);
    assert_ticks(2, "0 1; -1 2; 0 1");
}

static void test_waits_that_overlap(void **state)
{
    (void)state;
    sleeps(ASLEEP, 6, 6);
    sleeps(ELSEWHERE, 8, 5);
    sleeps(ELSEWHERE, 8, 1);
    assert_ticks(1, "0 6; 1 2");
}

static void test_no_record(void **state)
{
    (void)state;
    sleeps(ASLEEP, 6, 6);
    profile->waits[0].waker = 0;
    assert_ticks(0, "");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_what_lies_between_waits),
        TEST(test_any_order),
        TEST(test_the_nearest_sample_stands_for_others),
        TEST(test_a_thread_that_was_never_sampled),
        TEST(test_a_wait_in_an_unknown_place),
        TEST(test_waits_that_overlap),
        TEST(test_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
