/* Totals for functions and for threads. */
#include "make_profile.h"
#include "profile/function_times.h"

#define TICK_NS 10101010u

static const struct fgprof_function *find(const struct fgprof_function *rows, size_t count,
                                          const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (name ? rows[i].name && strcmp(rows[i].name, name) == 0 : !rows[i].name)
            return &rows[i];
    }
    fail_msg("no row %s", name ? name : "without a name");
    return NULL;
}

static void assert_times(const struct fgprof_function *row, uint64_t self, uint64_t total)
{
    assert_int_equal(row->self_ns, self * TICK_NS);
    assert_int_equal(row->total_ns, total * TICK_NS);
}

static void test_self_and_total(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/bin/app", "");
    uint32_t main_at = make_function(profile, 0x401000, app, "main", "a.c", 1);
    uint32_t work_at = make_function(profile, 0x402000, app, "work", "a.c", 2);
    uint32_t work_again_at = make_function(profile, 0x402010, app, "work", "a.c", 3);
    uint32_t unnamed = make_location(profile, 0x403000, app, 0, NULL);
    MAKE_SAMPLE(profile, "app", 7, 3, work_at, main_at);
    MAKE_SAMPLE(profile, "app", 7, 4, work_again_at, work_at, main_at); /* a recursive call */
    MAKE_SAMPLE(profile, "app", 8, 5, unnamed, work_at, main_at);
    struct fgprof_function *rows;
    size_t count;
    assert_int_equal(profile_functions(profile, NULL, 0, &rows, &count), 0);
    assert_int_equal(count, 3);
    assert_times(find(rows, count, "main"), 0, 12);
    assert_times(find(rows, count, "work"), 7, 12);
    assert_times(find(rows, count, NULL), 5, 5);
    assert_string_equal(find(rows, count, NULL)->module, "/bin/app");
    free(rows);
    fgprof_profile_free(profile);
}

static void test_functions_of_equal_name_in_two_modules_are_two(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/bin/app", "");
    uint32_t plugin = make_mapping(profile, 0x800000, "/lib/plugin.so", "");
    MAKE_SAMPLE(profile, "app", 7, 1, make_function(profile, 0x401000, app, "init", "a.c", 1));
    MAKE_SAMPLE(profile, "app", 7, 2, make_function(profile, 0x801000, plugin, "init", "b.c", 1));
    struct fgprof_function *rows;
    size_t count;
    assert_int_equal(profile_functions(profile, NULL, 0, &rows, &count), 0);
    assert_int_equal(count, 2);
    assert_string_not_equal(rows[0].module, rows[1].module);
    free(rows);
    fgprof_profile_free(profile);
}

static void test_inlined_calls_are_functions(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/bin/app", "");
    struct made_line lines[] = {{"inner", "a.c", 1, true}, {"outer", "a.c", 2, false}, {0}};
    MAKE_SAMPLE(profile, "app", 7, 6, make_location(profile, 0x401000, app, 0, lines));
    struct fgprof_function *rows;
    size_t count;
    assert_int_equal(profile_functions(profile, NULL, 0, &rows, &count), 0);
    assert_times(find(rows, count, "inner"), 6, 6);
    assert_times(find(rows, count, "outer"), 0, 6);
    free(rows);
    fgprof_profile_free(profile);
}

static void test_what_is_not_kept_does_not_count(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t at = make_function(profile, 0x401000, PROFILE_NO_MAPPING, "f", "a.c", 1);
    make_state(profile, at, THREAD_RUNNING, "", "", 1);
    make_state(profile, at, THREAD_SLEEPING, "futex", "", 2);
    struct fgprof_function *rows;
    size_t count;
    fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU);
    assert_int_equal(profile_functions(profile, NULL, 0, &rows, &count), 0);
    assert_times(find(rows, count, "f"), 1, 1);
    assert_string_equal(rows[0].module, "");
    free(rows);
    fgprof_profile_free(profile);
}

static void test_functions_of_some_threads(void **state)
{
    (void)state;
    const pid_t tids[] = {7, 9};
    struct fgprof_profile *profile = make_profile();
    uint32_t f = make_function(profile, 0x401000, PROFILE_NO_MAPPING, "f", "a.c", 1);
    MAKE_SAMPLE(profile, "app", 7, 1, f);
    MAKE_SAMPLE(profile, "app", 8, 2, f);
    MAKE_SAMPLE(profile, "app", 9, 4, f);
    struct fgprof_function *rows;
    size_t count;
    assert_int_equal(profile_functions(profile, tids, 2, &rows, &count), 0);
    assert_times(find(rows, count, "f"), 5, 5);
    free(rows);
    assert_int_equal(profile_functions(profile, tids, 0, &rows, &count), 0);
    assert_times(find(rows, count, "f"), 0, 0);
    free(rows);
    fgprof_profile_free(profile);
}

/* Adds what MAKE_SAMPLE adds, but of a goroutine that is on no thread. */
static void make_goroutine(struct fgprof_profile *profile, uint32_t id, uint64_t count,
                           uint32_t location)
{
    struct profile_sample sample = {.thread_name = make_string(profile, "app"),
                                    .tid = id,
                                    .is_goroutine = true,
                                    .count = count,
                                    .time_ns = count * TICK_NS};
    assert_int_equal(profile_add_stack(profile, &location, 1, &sample.stack), 0);
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
}

static void test_functions_of_threads_and_goroutines(void **state)
{
    (void)state;
    static const struct {
        pid_t tids[3];
        size_t count;
        uint64_t ticks;
    } cases[] = {{{7}, 1, 1}, {{-7}, 1, 2}, {{-9, 7}, 2, 5}, {{-9, -7, 8}, 3, 6}, {{9}, 1, 0}};
    struct fgprof_profile *profile = make_profile();
    uint32_t f = make_function(profile, 0x401000, PROFILE_NO_MAPPING, "f", "a.c", 1);
    MAKE_SAMPLE(profile, "app", 7, 1, f);
    make_goroutine(profile, 7, 2, f);
    make_goroutine(profile, 9, 4, f);
    struct fgprof_function *rows;
    size_t count;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(profile_functions(profile, cases[i].tids, cases[i].count, &rows, &count),
                         0);
        assert_times(find(rows, count, "f"), cases[i].ticks, cases[i].ticks);
        free(rows);
    }
    assert_int_equal(profile_functions(profile, NULL, 0, &rows, &count), 0);
    assert_times(find(rows, count, "f"), 7, 7);
    free(rows);
    fgprof_profile_free(profile);
}

static void test_time_is_told_apart_by_state(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t f = make_function(profile, 0x401000, PROFILE_NO_MAPPING, "f", "a.c", 1);
    make_state(profile, f, THREAD_RUNNING, "", "", 1);
    make_state(profile, f, THREAD_RUNNABLE, "", "", 2);
    make_state(profile, f, THREAD_SLEEPING, "futex", "", 4);
    make_state(profile, f, THREAD_UNINTERRUPTIBLE, "read", "", 8);
    make_state(profile, f, THREAD_STOPPED, "", "", 16);
    make_state(profile, f, THREAD_UNKNOWN, "", "", 32);
    struct fgprof_function *rows;
    size_t count;
    assert_int_equal(profile_functions(profile, NULL, 0, &rows, &count), 0);
    const uint64_t *states = find(rows, count, "f")->state_ns;
    assert_int_equal(states[FGPROF_STATE_RUNNING], 1 * TICK_NS);
    assert_int_equal(states[FGPROF_STATE_RUNNABLE], 2 * TICK_NS);
    assert_int_equal(states[FGPROF_STATE_WAITING], 12 * TICK_NS);
    assert_int_equal(states[FGPROF_STATE_STOPPED], 16 * TICK_NS);
    assert_int_equal(states[FGPROF_STATE_UNKNOWN], 32 * TICK_NS);
    free(rows);
    fgprof_profile_free(profile);
}

static void test_activities(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t f = make_function(profile, 0x401000, PROFILE_NO_MAPPING, "f", "a.c", 1);
    uint32_t g = make_function(profile, 0x402000, PROFILE_NO_MAPPING, "g", "a.c", 1);
    make_state(profile, f, THREAD_SLEEPING, "futex", "", 2);
    make_state(profile, f, THREAD_UNINTERRUPTIBLE, "futex", "", 3); /* waits, too */
    make_state(profile, f, THREAD_SLEEPING, "read", "", 4);
    make_state(profile, g, THREAD_RUNNING, "", "", 5);
    struct fgprof_activity *rows;
    size_t count;
    assert_int_equal(profile_activities(profile, &rows, &count), 0);
    assert_int_equal(count, 3);
    assert_string_equal(rows[0].syscall, "futex");
    assert_string_equal(rows[0].resource, "");
    assert_int_equal(rows[0].state, FGPROF_STATE_WAITING);
    assert_int_equal(rows[0].time_ns, 5 * TICK_NS);
    assert_string_equal(rows[1].syscall, "read");
    assert_string_equal(rows[2].function, "g");
    assert_string_equal(rows[2].thread_name, "app");
    assert_int_equal(rows[2].state, FGPROF_STATE_RUNNING);
    free(rows);
    fgprof_profile_free(profile);
}

/* Shows the function in which the program waits, not the library function that it calls. */
static void test_activity_of_a_wait(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t libc = make_mapping(profile, 0x10000000, "/lib/libc.so.6", "");
    uint32_t f = make_function(profile, 0x401000, PROFILE_NO_MAPPING, "f", "a.c", 1);
    uint32_t lock = make_function(profile, 0x10001000, libc, "pthread_mutex_lock", "", 0);
    MAKE_SAMPLE(profile, "app", 7, 3, lock, f);
    struct profile_wait wait = {.kind = make_string(profile, "mutex"),
                                .resource = make_string(profile, "mutex g_lock"),
                                .owner_process = PROFILE_NO_OWNER,
                                .owner_stack = PROFILE_NO_STACK};
    struct fgprof_activity *rows;
    uint32_t row;
    size_t count;
    assert_int_equal(profile_add_wait(profile, &wait, &row), 0);
    profile->samples[0].wait_plus_1 = row + 1;
    assert_int_equal(profile_activities(profile, &rows, &count), 0);
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].function, "f");
    assert_string_equal(rows[0].resource, "mutex g_lock");
    free(rows);
    fgprof_profile_free(profile);
}

/* A thread and a goroutine that have the same id, name and place. */
static void test_rows_of_threads_and_goroutines(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t f = make_function(profile, 0x401000, PROFILE_NO_MAPPING, "f", "a.c", 1), row;
    struct profile_wait wait = {.kind = make_string(profile, "mutex"),
                                .resource = make_string(profile, "mutex g_lock"),
                                .owner_process = PROFILE_NO_OWNER,
                                .owner_stack = PROFILE_NO_STACK};
    MAKE_SAMPLE(profile, "app", 7, 1, f);
    make_goroutine(profile, 7, 2, f);
    assert_int_equal(profile_add_wait(profile, &wait, &row), 0);
    profile->samples[0].wait_plus_1 = profile->samples[1].wait_plus_1 = row + 1;
    struct fgprof_activity *activities;
    struct fgprof_wait *waits;
    size_t count;
    assert_int_equal(profile_activities(profile, &activities, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(activities[0].tid, 7);
    assert_int_equal(activities[0].time_ns, 1 * TICK_NS);
    assert_int_equal(activities[1].tid, -7);
    assert_int_equal(activities[1].time_ns, 2 * TICK_NS);
    free(activities);
    assert_int_equal(profile_waits(profile, &waits, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(waits[0].tid, 7);
    assert_int_equal(waits[1].tid, -7);
    free(waits);
    fgprof_profile_free(profile);
}

/* One row for each thread and owner, wherever they were. */
static void test_waits(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t f = make_function(profile, 0x401000, PROFILE_NO_MAPPING, "f", "a.c", 1);
    uint32_t g = make_function(profile, 0x402000, PROFILE_NO_MAPPING, "g", "a.c", 1);
    struct profile_wait unowned = {.kind = make_string(profile, "mutex"),
                                   .resource = make_string(profile, "mutex g_lock"),
                                   .owner_process = PROFILE_NO_OWNER,
                                   .owner_stack = PROFILE_NO_STACK};
    uint32_t row;
    make_state(profile, f, THREAD_RUNNING, "", "", 1);
    make_wait(profile, f, NULL, 2);
    make_wait(profile, g, &f, 3);
    make_wait(profile, g, NULL, 4);
    assert_int_equal(profile_add_wait(profile, &unowned, &row), 0);
    profile->samples[3].wait_plus_1 = row + 1;
    /* The waker is known, but not the resource. */
    const struct profile_wait woken = {.waker = make_string(profile, "timer"),
                                       .owner_process = PROFILE_NO_OWNER,
                                       .owner_stack = PROFILE_NO_STACK};
    make_state(profile, f, THREAD_SLEEPING, "nanosleep", "", 5);
    assert_int_equal(profile_add_wait(profile, &woken, &row), 0);
    profile->samples[4].wait_plus_1 = row + 1;
    struct fgprof_wait *rows;
    size_t count;
    assert_int_equal(profile_waits(profile, &rows, &count), 0);
    assert_int_equal(count, 2);
    assert_string_equal(rows[0].resource, "mutex g_lock");
    assert_string_equal(rows[0].owner, "boss");
    assert_string_equal(rows[0].thread_name, "app");
    assert_int_equal(rows[0].time_ns, 5 * TICK_NS);
    assert_null(rows[1].owner);
    assert_int_equal(rows[1].time_ns, 4 * TICK_NS);
    free(rows);
    profile->kept = FGPROF_KEPT_ON_CPU;
    assert_int_equal(profile_waits(profile, &rows, &count), 0);
    assert_int_equal(count, 0);
    free(rows);
    fgprof_profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_self_and_total),
        cmocka_unit_test(test_functions_of_equal_name_in_two_modules_are_two),
        cmocka_unit_test(test_inlined_calls_are_functions),
        cmocka_unit_test(test_what_is_not_kept_does_not_count),
        cmocka_unit_test(test_functions_of_some_threads),
        cmocka_unit_test(test_functions_of_threads_and_goroutines),
        cmocka_unit_test(test_time_is_told_apart_by_state),
        cmocka_unit_test(test_activities),
        cmocka_unit_test(test_activity_of_a_wait),
        cmocka_unit_test(test_rows_of_threads_and_goroutines),
        cmocka_unit_test(test_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
