#include "make_profile.h"

#include <errno.h>
#include <stdio.h>

static struct fgprof_profile *profile;

static int set_up(void **state)
{
    (void)state;
    uint32_t process;
    profile = make_profile();
    profile->period_ns = 1000;
    return profile_add_process(profile, 70, "app", &process);
}

static int tear_down(void **state)
{
    (void)state;
    profile_free(profile);
    return 0;
}

/* Adds a sample of the thread in one function; returns its number. `waker_tid` 0: not woken by a
 * sampled thread. */
static uint32_t in(const char *thread, uint32_t tid, const char *function, enum thread_state state,
                   const char *waker, uint32_t waker_tid)
{
    struct profile_wait wait = {.owner_process = PROFILE_NO_OWNER,
                                .owner_stack = PROFILE_NO_STACK,
                                .waker = make_string(profile, waker),
                                .waker_process_plus_1 = waker_tid != 0,
                                .waker_tid = waker_tid};
    struct profile_sample sample = {
        .thread_name = make_string(profile, thread), .tid = tid, .state = state, .count = 1};
    uint32_t row, number,
        location = make_function(profile, 0x1000 * (profile->location_count + 1),
                                 PROFILE_NO_MAPPING, function, "", 0);
    if (*waker) {
        assert_int_equal(profile_add_wait(profile, &wait, &row), 0);
        sample.wait_plus_1 = row + 1;
    }
    assert_int_equal(profile_add_stack(profile, &location, 1, &sample.stack), 0);
    assert_int_equal(profile_add_sample(profile, &sample, &number), 0);
    return number;
}

static uint32_t runs(const char *thread, uint32_t tid, const char *function)
{
    return in(thread, tid, function, THREAD_RUNNING, "", 0);
}

static uint32_t waits(const char *thread, uint32_t tid, const char *function, const char *waker,
                      uint32_t waker_tid)
{
    return in(thread, tid, function, THREAD_SLEEPING, waker, waker_tid);
}

/* The same for a thread that waits for a CPU. `owner_tid` 0: no sampled thread had that CPU. */
static uint32_t queues(const char *thread, uint32_t tid, const char *function, const char *resource,
                       const char *owner, uint32_t owner_tid)
{
    uint32_t number = in(thread, tid, function, THREAD_RUNNABLE, resource, 0);
    struct profile_wait *wait = &profile->waits[profile->samples[number].wait_plus_1 - 1];
    wait->waker = 0;
    wait->resource = make_string(profile, resource);
    if (owner_tid) {
        wait->owner_process = 0;
        wait->owner_tid = owner_tid;
        wait->owner_name = make_string(profile, owner);
    }
    return number;
}

/* The thread's samples from `first_tick` on, as pairs of a sample number and its ticks. */
static void spends(const char *thread, uint32_t tid, uint32_t first_tick, size_t count,
                   const uint32_t pairs[][2])
{
    assert_int_equal(array_reserve(&profile->timelines, &profile->timeline_capacity,
                                   profile->timeline_count + 1),
                     0);
    assert_int_equal(array_reserve(&profile->tick_runs, &profile->tick_run_capacity,
                                   profile->tick_run_count + count),
                     0);
    profile->timelines[profile->timeline_count++] = (struct profile_timeline){
        .thread_name = make_string(profile, thread),
        .tid = tid,
        .first_tick = first_tick,
        .first_tick_run = profile->tick_run_count,
        .tick_run_count = count,
    };
    for (size_t i = 0; i < count; i++)
        profile->tick_runs[profile->tick_run_count++] =
            (struct profile_tick_run){.sample = pairs[i][0], .ticks = pairs[i][1]};
}

#define SPENDS(thread, tid, first_tick, ...)                                                       \
    spends(thread, tid, first_tick, sizeof(uint32_t[][2]){__VA_ARGS__} / (2 * sizeof(uint32_t)),   \
           (const uint32_t[][2]){__VA_ARGS__})

static void assert_paths(const char *of, const char *expected)
{
    assert_int_equal(fgprof_profile_set_critical(profile, of), 0);
    assert_written(profile, FGPROF_FOLDED, expected);
    uint64_t ticks = 0;
    for (size_t i = 0; i < profile->sample_count; i++) {
        ticks += profile->samples[i].count;
        assert_int_equal(profile->samples[i].time_ns, profile->samples[i].count * 1000);
    }
    assert_int_equal(ticks, profile->critical.ticks);
    assert_int_equal(profile->summary.critical_ns, ticks * 1000);
}

static void make_chain(void)
{
    uint32_t ask = waits("client", 1, "ask", "middle", 2), think = runs("client", 1, "think"),
             parse = runs("middle", 2, "parse"), query = waits("middle", 2, "query", "end", 3),
             ready = in("middle", 2, "query", THREAD_RUNNABLE, "", 0),
             idle = waits("middle", 2, "idle", "client", 1),
             search = waits("end", 3, "search", "timer", 0);
    SPENDS("client", 1, 10, {think, 4}, {ask, 12}, {think, 1});
    SPENDS("middle", 2, 12, {idle, 2}, {parse, 3}, {query, 7}, {ready, 2}, {idle, 9});
    SPENDS("end", 3, 10, {search, 30});
}

static void test_a_chain_of_three(void **state)
{
    (void)state;
    make_chain();
    for (size_t i = 0; i < profile->sample_count; i++)
        profile->samples[i].goroutine = profile->samples[i].tid;
    assert_paths("client", "ask;[waits for middle];parse 3\n"
                           "ask;[waits for middle];query;[waits for a CPU] 2\n"
                           "ask;[waits for middle];query;[waits for end];search;"
                           "[ended by timer] 7\n"
                           "think 5\n");
    const struct profile_sample *sample = &profile->samples[profile->sample_count - 1];
    assert_string_equal(strings_get(&profile->strings, sample->thread_name), "client");
    for (size_t i = 0; i < profile->sample_count; i++)
        assert_int_equal(profile->samples[i].goroutine, 1);
    assert_int_equal(profile->critical.waited, 12);
    assert_int_equal(profile->critical.inferred, 0);
    assert_string_equal(strings_get(&profile->strings, profile->critical.ends[0].text),
                        "end, in search: ended by timer");
    assert_int_equal(profile->critical.ends[0].ticks, 7);
    assert_int_equal(fgprof_profile_set_critical(profile, "client"), -EINVAL);
}

static void test_a_thread_by_its_id(void **state)
{
    (void)state;
    make_chain();
    assert_int_equal(fgprof_profile_set_critical(profile, "client/2"), -ENOENT);
    assert_int_equal(fgprof_profile_set_critical(profile, "clien"), -ENOENT);
    assert_paths("end/3", "search;[ended by timer] 30\n");
}

/* Each wait is followed to its own end only, so no thread waits for itself. */
static void test_threads_that_wake_each_other(void **state)
{
    (void)state;
    uint32_t ping = waits("a", 1, "ping", "b", 2), pong = waits("b", 2, "pong", "a", 1),
             work = runs("b", 2, "work");
    SPENDS("a", 1, 1, {ping, 9});
    SPENDS("b", 2, 1, {work, 4}, {pong, 5});
    assert_paths("1", "ping;[waits for b];pong;[waits in a circle];[inferred] 5\n"
                      "ping;[waits for b];work 4\n");
    assert_int_equal(profile->critical.inferred, 5);
    assert_int_equal(profile->critical.unknown, 5);
}

static void test_what_is_not_known(void **state)
{
    (void)state;
    uint32_t open = waits("a", 1, "open", "", 0), for_b = waits("a", 1, "for_b", "b", 2),
             by_other = waits("a", 1, "by_other", "cron/99", 0);
    SPENDS("a", 1, 1, {for_b, 3}, {by_other, 2}, {PROFILE_NO_SAMPLE, 1}, {open, 4});
    assert_paths("a", "[place not known] 1\n"
                      "by_other;[ended by cron/99] 2\n"
                      "for_b;[ended by b] 3\n"
                      "open;[waker not known] 4\n");
    assert_int_equal(profile->critical.unknown, 5);
}

/* The thread's id is later used by a thread of another process, whose time is not its own. */
static void test_a_waker_that_ended(void **state)
{
    (void)state;
    uint32_t process;
    assert_int_equal(profile_add_process(profile, 71, "other", &process), 0);
    uint32_t wait = waits("a", 1, "wait", "b", 2), work = runs("b", 2, "work"),
             foreign = runs("c", 2, "foreign");
    profile->samples[foreign].process = process;
    SPENDS("a", 1, 1, {wait, 9});
    SPENDS("b", 2, 1, {work, 3});
    SPENDS("c", 2, 6, {foreign, 9});
    assert_paths("a", "wait;[ended by b] 6\n"
                      "wait;[waits for b];work 3\n");
}

static void test_another_process(void **state)
{
    (void)state;
    uint32_t process;
    assert_int_equal(profile_add_process(profile, 71, "server", &process), 0);
    uint32_t wait = waits("a", 1, "wait", "b", 2), work = runs("b", 2, "work");
    profile->samples[work].process = process;
    profile->waits[profile->samples[wait].wait_plus_1 - 1].waker_process_plus_1 = process + 1;
    SPENDS("a", 1, 1, {wait, 9});
    SPENDS("b", 2, 1, {work, 9});
    fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME);
    assert_int_equal(fgprof_profile_set_critical(profile, "a"), 0);
    assert_written(profile, FGPROF_FOLDED, "wait;[waits for b of server];work 9\n");
}

/* If nothing has ended the wait yet, the thread waits for the owner. */
static void test_an_owner(void **state)
{
    (void)state;
    uint32_t wait = waits("a", 1, "lock", "x", 9), work = runs("b", 2, "work");
    struct profile_wait *row = &profile->waits[profile->samples[wait].wait_plus_1 - 1];
    row->waker = row->waker_process_plus_1 = row->waker_tid = 0;
    row->owner_process = 0;
    row->owner_tid = 2;
    row->owner_name = make_string(profile, "b");
    SPENDS("a", 1, 1, {wait, 9});
    SPENDS("b", 2, 1, {work, 9});
    assert_paths("a", "lock;[waits for b];work 9\n");
}

/* The path continues with the user of the CPU at the ticks at which it had the CPU. */
static void test_a_cpu(void **state)
{
    (void)state;
    uint32_t ready = queues("a", 1, "ready", "CPU used by app/70", "hog", 2),
             spin = runs("hog", 2, "spin"), sleep = waits("hog", 2, "sleep", "a", 1),
             again = queues("hog", 2, "again", "CPU used by app/70", "a", 1);
    SPENDS("a", 1, 1, {ready, 14});
    SPENDS("hog", 2, 1, {spin, 3}, {sleep, 2}, {again, 1}, {spin, 4}, {PROFILE_NO_SAMPLE, 1});
    profile->tick_runs[4].is_inferred = true;
    assert_paths("a", "ready;[waits for a CPU used by hog] 3\n"
                      "ready;[waits for a CPU used by hog];[inferred] 3\n"
                      "ready;[waits for a CPU used by hog];[place not known] 1\n"
                      "ready;[waits for a CPU used by hog];spin 3\n"
                      "ready;[waits for a CPU used by hog];spin;[inferred] 4\n");
    assert_int_equal(profile->critical.waited, 14);
    assert_int_equal(profile->critical.inferred, 7);
    assert_int_equal(profile->critical.unknown, 1);
}

static void test_a_cpu_within_a_chain(void **state)
{
    (void)state;
    uint32_t process;
    assert_int_equal(profile_add_process(profile, 71, "backup", &process), 0);
    uint32_t ask = waits("client", 1, "ask", "server", 2), spin = runs("compress", 3, "spin"),
             ready = queues("server", 2, "serve", "CPU used by backup/71", "compress", 3);
    profile->samples[spin].process = process;
    profile->waits[profile->samples[ready].wait_plus_1 - 1].owner_process = process;
    SPENDS("client", 1, 1, {ask, 5});
    SPENDS("server", 2, 1, {ready, 5});
    SPENDS("compress", 3, 1, {spin, 4});
    assert_paths("client", "ask;[waits for server];serve;"
                           "[waits for a CPU used by compress of backup];spin 4\n"
                           "ask;[waits for server];serve;[waits for a CPU used by compress] 1\n");
    assert_string_equal(strings_get(&profile->strings, profile->critical.ends[0].text),
                        "compress, in spin");
}

static void test_a_cpu_of_no_sampled_thread(void **state)
{
    (void)state;
    uint32_t by_other = queues("a", 1, "by_other", "CPU used by gzip in backup/9", "", 0),
             idle = queues("a", 1, "idle", "idle CPU", "", 0),
             unknown = in("a", 1, "unknown", THREAD_RUNNABLE, "", 0);
    SPENDS("a", 1, 1, {by_other, 2}, {idle, 3}, {unknown, 1});
    assert_paths("a", "by_other;[waits for a CPU used by gzip in backup/9] 2\n"
                      "idle;[waits for an idle CPU] 3\n"
                      "unknown;[waits for a CPU] 1\n");
    assert_int_equal(profile->critical.waited, 6);
    assert_int_equal(profile->critical.unknown, 0);
    assert_string_equal(strings_get(&profile->strings, profile->critical.ends[1].text),
                        "a, in by_other: waits for a CPU used by gzip in backup/9");
}

/* A waiting thread does not have the CPU. */
static void test_a_cpu_of_the_thread_that_waits(void **state)
{
    (void)state;
    uint32_t ask = waits("a", 1, "ask", "b", 2),
             ready = queues("b", 2, "ready", "CPU used by app/70", "a", 1);
    SPENDS("a", 1, 1, {ask, 5});
    SPENDS("b", 2, 1, {ready, 5});
    assert_paths("a", "ask;[waits for b];ready;[waits for a CPU used by a];[inferred] 5\n");
    assert_int_equal(profile->critical.unknown, 0);
}

static void test_a_long_chain(void **state)
{
    (void)state;
    char name[8], next[8];
    for (uint32_t i = 1; i <= 20; i++) {
        snprintf(name, sizeof name, "t%u", i);
        snprintf(next, sizeof next, "t%u", i + 1);
        uint32_t wait = waits(name, i, "wait", next, i + 1);
        SPENDS(name, i, 1, {wait, 5});
    }
    assert_int_equal(fgprof_profile_set_critical(profile, "t1"), 0);
    assert_int_equal(profile->sample_count, 1);
    const struct profile_stack *stack = &profile->stacks[profile->samples[0].stack];
    assert_int_equal(stack->depth, 2 * 16);
    assert_int_equal(profile->critical.unknown, 5);
}

static void test_inferred_ticks(void **state)
{
    (void)state;
    uint32_t wait = waits("a", 1, "wait", "b", 2), work = runs("b", 2, "work");
    SPENDS("a", 1, 1, {wait, 9});
    SPENDS("b", 2, 1, {work, 6}, {work, 3});
    profile->tick_runs[2].is_inferred = true;
    assert_paths("a", "wait;[waits for b];work 6\n"
                      "wait;[waits for b];work;[inferred] 3\n");
    assert_int_equal(profile->critical.inferred, 3);
    assert_int_equal(profile->critical.unknown, 0);
}

static void test_a_label(void **state)
{
    (void)state;
    uint32_t wait = waits("a", 1, "wait", "b", 2), other = runs("a", 1, "other"),
             work = runs("b", 2, "work");
    SPENDS("a", 1, 1, {wait, 5}, {other, 3}, {wait, 1});
    SPENDS("b", 2, 1, {work, 9});
    MAKE_LABELS(profile, wait, "route", "/buy");
    MAKE_LABELS(profile, other, "route", "/bu");
    assert_int_equal(fgprof_profile_set_critical(profile, "route=/b"), -ENOENT);
    assert_int_equal(fgprof_profile_set_critical(profile, "rout=/buy"), -ENOENT);
    assert_paths("route=/buy", "wait;[waits for b];work 6\n");
    assert_non_null(sample_label(profile, &profile->samples[0], 0));
}

static void test_no_record(void **state)
{
    (void)state;
    runs("a", 1, "work");
    assert_int_equal(fgprof_profile_set_critical(profile, "a"), -ENODATA);
    assert_written(profile, FGPROF_FOLDED, "work 1\n");
    profile->kind = FGPROF_KIND_CPU;
    assert_int_equal(fgprof_profile_set_critical(profile, "a"), -EINVAL);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_chain_of_three),
        TEST(test_a_thread_by_its_id),
        TEST(test_threads_that_wake_each_other),
        TEST(test_what_is_not_known),
        TEST(test_a_waker_that_ended),
        TEST(test_another_process),
        TEST(test_an_owner),
        TEST(test_a_cpu),
        TEST(test_a_cpu_within_a_chain),
        TEST(test_a_cpu_of_no_sampled_thread),
        TEST(test_a_cpu_of_the_thread_that_waits),
        TEST(test_a_long_chain),
        TEST(test_inferred_ticks),
        TEST(test_a_label),
        TEST(test_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
