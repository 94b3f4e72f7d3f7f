#include "make_profile.h"

#include <errno.h>
#include <stdio.h>

#define SECOND 1000000000u

static int set_up(void **state)
{
    struct fgprof_profile *profile = make_profile();
    profile->period_ns = 10000000;
    profile->summary.elapsed_ns = 10ull * SECOND;
    *state = profile;
    return 0;
}

static int tear_down(void **state)
{
    fgprof_profile_free(*state);
    return 0;
}

/* What a thread spent time on. */
struct spent {
    const char *thread;
    uint32_t tid;
    enum thread_state state;
    const char *call;
    uint64_t time_ms;
    bool never_moved;
    uint32_t process;
};

/* `locations`: leaf first. */
static void spend(struct fgprof_profile *profile, const struct spent *spent,
                  const uint32_t *locations, size_t depth)
{
    struct profile_sample sample = {
        .process = spent->process,
        .thread_name = make_string(profile, spent->thread),
        .tid = spent->tid,
        .state = spent->state,
        .syscall_name = make_string(profile, spent->call),
        .count = spent->time_ms / 10,
        .time_ns = spent->time_ms * 1000000,
        .never_moved = spent->never_moved,
    };
    assert_int_equal(profile_add_stack(profile, locations, depth, &sample.stack), 0);
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
    profile->summary.samples += sample.count;
}

#define SPEND(profile, spent, ...)                                                                 \
    spend(profile, &spent, (const uint32_t[]){__VA_ARGS__},                                        \
          sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t))

/* A function's location, with an address of its own. */
static uint32_t place(struct fgprof_profile *profile, uint32_t mapping, const char *name)
{
    return make_function(profile, 0x1000 + 16 * profile->location_count, mapping, name, "", 0);
}

static uint32_t process_of(struct fgprof_profile *profile, uint32_t pid, const char *name)
{
    uint32_t process;
    assert_int_equal(profile_add_process(profile, pid, name, &process), 0);
    return process;
}

static void assert_has(const struct fgprof_profile *profile, enum fgprof_format format,
                       const char *expected)
{
    char *text = written(profile, format, NULL);
    if (!strstr(text, expected))
        assert_string_equal(text, expected); /* shows both */
    if (format == FGPROF_REPORT_JSON)
        assert_brackets_match(text);
    free(text);
}

static void assert_lacks(const struct fgprof_profile *profile, const char *unwanted)
{
    char *text = written(profile, FGPROF_REPORT, NULL);
    if (strstr(text, unwanted))
        assert_string_equal(text, unwanted);
    free(text);
}

#define ASSERT_REPORT(profile, expected) assert_has(profile, FGPROF_REPORT, expected)

/* One thread computes, one waits for a lock, one for a file, and one for work. */
static void make_all(struct fgprof_profile *profile)
{
    uint32_t app = make_mapping(profile, 0x400000, "/srv/app", "aa");
    uint32_t libc = make_mapping(profile, 0x7f0000000000, "/usr/lib/libc.so.6", "bb");
    uint32_t start = place(profile, libc, "start_thread"), work = place(profile, app, "work");
    uint32_t hash = place(profile, app, "hash"), save = place(profile, app, "save");
    uint32_t lock = place(profile, libc, "__pthread_mutex_lock");
    uint32_t inner = place(profile, libc, "__lll_lock_wait");
    uint32_t sync = place(profile, libc, "fsync"), pool = place(profile, app, "pool");
    uint32_t condition = place(profile, libc, "pthread_cond_wait");
    struct spent hashed = {"hot", 11, THREAD_RUNNING, "", 9000, false, 0};
    struct spent queued = {"hot", 11, THREAD_RUNNABLE, "", 600, false, 0};
    struct spent worked = {"hot", 11, THREAD_RUNNING, "", 400, false, 0};
    struct spent locked = {"io", 12, THREAD_SLEEPING, "futex", 4000, false, 0};
    struct spent synced = {"io", 12, THREAD_UNINTERRUPTIBLE, "fsync", 6000, false, 0};
    struct spent idle = {"pool", 13, THREAD_SLEEPING, "futex", 10000, true, 0};
    assert_int_equal(process_of(profile, 10, "app"), 0);
    SPEND(profile, hashed, hash, work, start);
    SPEND(profile, queued, hash, work, start);
    SPEND(profile, worked, work, start);
    SPEND(profile, locked, inner, lock, save, work, start);
    SPEND(profile, synced, sync, save, work, start);
    SPEND(profile, idle, condition, pool, start);
    profile->summary.ticks_planned = 1000;
    profile->summary.ticks_late = 20;
    profile->summary.threads_seen = 3;
    profile->summary.kernel_samples = 940;
    assert_int_equal(fgprof_profile_set_command(profile, "fgprof-c attach -p 10 -f report"), 0);
}

static void test_golden_text(void **state)
{
    make_all(*state);
    assert_written(
        *state, FGPROF_REPORT,
        "fgprof-c report: app/10; 10.00 s, 3 threads\n"
        "  recorded by: fgprof-c attach -p 10 -f report\n"
        "  100 Hz: 1000 ticks, 2.0 % late; 3000 samples: 0.0 % cut, 0.0 % with an unnamed frame, "
        "0.0 % assumed\n"
        "  running threads: 940 samples by the kernel\n"
        "\n"
        "Worth a look:\n"
        "  1. thread \"hot\"/11 keeps a CPU busy: 94.0 % running, 6.0 % waiting for a CPU\n"
        "     95.7 % of its running time: work > hash\n"
        "  2. 1 thread waits 4.00 s for a lock that save takes\n"
        "     while not waiting, mostly in (6.00 s): work > save > fsync\n"
        "\n"
        "On a CPU: 9.40 s of thread time\n"
        "    SELF s   TOTAL s  THREADS  PATH\n"
        "      9.00      9.00        1  work > hash\n"
        "      0.40      9.40        1  work\n"
        "\n"
        "Waiting: 10.00 s of thread time\n"
        "    SELF s   TOTAL s  THREADS  CALL                      PATH, below work\n"
        "      6.00      6.00        1  uninterruptible: fsync    save > fsync\n"
        "      4.00      4.00        1  futex                     save > __pthread_mutex_lock\n"
        "\n"
        "Idle: 10.00 s of thread time\n"
        "    SELF s   TOTAL s  THREADS  NEVER WOKE  CALL                      PATH\n"
        "     10.00     10.00        1           1  futex                     pool > "
        "pthread_cond_wait\n"
        "\n"
        "Thread time in seconds                                     RUNNING FOR A CPU   WAITING"
        "      IDLE     OTHER\n"
        "  app/10, 3 threads                                           9.40      0.60     10.00"
        "     10.00      0.00\n"
        "    \"hot\"/11                                                  9.40      0.60      0.00"
        "      0.00      0.00\n"
        "    \"io\"/12                                                   0.00      0.00     10.00"
        "      0.00      0.00\n"
        "\n"
        "Next, a flame graph of what ran:\n"
        "  fgprof-c attach -p 10 -d 30s --on-cpu -o cpu.html\n");
}

static void test_who_holds_it_up(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t holding, waiting = place(profile, PROFILE_NO_MAPPING, "lock");
    process_of(profile, 10, "app");
    holding = place(profile, PROFILE_NO_MAPPING, "flush");
    assert_lacks(profile, "Blocked by");
    make_wait(profile, waiting, NULL, 100);
    make_wait(profile, waiting, &holding, 300);
    assert_has(profile, FGPROF_REPORT,
               "Blocked by: 4.04 s of waits with a known owner\n"
               "    4.04 s  mutex g_lock, of thread \"boss\"\n"
               "     owner was in: flush\n"
               "     waiters are in: lock\n\n");
    assert_has(profile, FGPROF_REPORT_JSON,
               "\"held_ns\":4040404000,\"holders\":[{\"resource\":\"mutex g_lock\","
               "\"owner\":\"boss\",\"time_ns\":4040404000,\"owner_path\":\"flush\","
               "\"waiter_path\":\"lock\"}]");
}

/* Waiting for a thread's end is not shown as blocked by it. */
static void test_the_end_of_a_thread_is_no_lock(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t waiting = place(profile, PROFILE_NO_MAPPING, "join");
    process_of(profile, 10, "app");
    make_wait(profile, waiting, NULL, 100);
    profile->waits[0].kind = make_string(profile, "end of a thread");
    assert_lacks(profile, "Who holds it up");
}

/* Waits are named, and frames that start threads or are inside libraries are left out. */
static void test_paths_are_of_the_program(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t app = make_mapping(profile, 0x400000, "/srv/app", "aa");
    uint32_t libc = make_mapping(profile, 0x7f0000000000, "/usr/lib/libc.so.6", "bb");
    uint32_t cxx = make_mapping(profile, 0x7f1000000000, "/usr/lib/libstdc++.so.6.0.30", "cc");
    uint32_t start = place(profile, libc, "start_thread");
    uint32_t routine = make_location(profile, 0x7f1000000111, cxx, 0, NULL);
    uint32_t invoke = place(profile, app, "std::__invoke_impl"), run = place(profile, app, "run");
    uint32_t guard = place(profile, app, "std::lock_guard::lock_guard");
    uint32_t lock = place(profile, libc, "pthread_mutex_lock");
    uint32_t copy = place(profile, libc, "memcpy"), inner = place(profile, libc, "copy_loop");
    struct spent waits = {"a", 1, THREAD_SLEEPING, "futex", 5000, false, 0};
    struct spent runs = {"a", 1, THREAD_RUNNING, "", 5000, false, 0};
    struct profile_wait wait = {.kind = make_string(profile, "mutex"),
                                .resource = make_string(profile, "mutex g_lock"),
                                .owner_process = PROFILE_NO_OWNER,
                                .owner_stack = PROFILE_NO_STACK};
    process_of(profile, 10, "app");
    SPEND(profile, waits, lock, guard, run, invoke, routine, start);
    SPEND(profile, runs, inner, copy, run, invoke, routine, start);
    assert_int_equal(profile_add_wait(profile, &wait, &profile->samples[0].wait_plus_1), 0);
    profile->samples[0].wait_plus_1++;
    ASSERT_REPORT(profile, " 1 thread waits 5.00 s for mutex g_lock, which run takes\n");
    ASSERT_REPORT(profile, "PATH\n      5.00      5.00        1  run > memcpy\n");
    ASSERT_REPORT(profile, "  mutex g_lock              run > pthread_mutex_lock\n");
}

/* Who takes a semaphore, and who ends the waits for it. */
struct use {
    const char *taker, *giver, *file, *waker; /* "": without a name */
    bool has_kernel_frames;
};

static uint32_t kernel_place(struct fgprof_profile *profile, const char *name)
{
    uint32_t location = place(profile, PROFILE_NO_MAPPING, name);
    profile->locations[location].is_kernel = true;
    return location;
}

static uint32_t place_of_use(struct fgprof_profile *profile, uint32_t mapping, const char *name,
                             const char *file)
{
    uint64_t address = 0x1000 + 16 * profile->location_count;
    return *name ? make_function(profile, address, mapping, name, file, 12)
                 : make_location(profile, address, mapping, 0, NULL);
}

/* Threads "a" and "b" wait for a semaphore. */
static void make_semaphore(struct fgprof_profile *profile, const struct use *use)
{
    uint32_t app = make_mapping(profile, 0x400000, "/srv/app", "aa");
    uint32_t libc = make_mapping(profile, 0x7f0000000000, "/usr/lib/libc.so.6", "bb");
    uint32_t wait = place(profile, libc, "sem_wait"), post = place(profile, libc, "sem_post");
    uint32_t take = place_of_use(profile, app, use->taker, use->file);
    uint32_t give = place_of_use(profile, app, use->giver, use->file);
    uint32_t run = place(profile, app, "run"), save = place(profile, app, "save");
    struct spent waits[] = {{"a", 1, THREAD_SLEEPING, "futex", 9500, false, 0},
                            {"b", 2, THREAD_SLEEPING, "futex", 9000, false, 0}};
    struct spent naps = {"b", 2, THREAD_SLEEPING, "futex", 1000, false, 0};
    struct profile_wait row = {.kind = make_string(profile, "semaphore"),
                               .resource = make_string(profile, "semaphore 0x1000"),
                               .owner_process = PROFILE_NO_OWNER,
                               .owner_stack = PROFILE_NO_STACK,
                               .waker = make_string(profile, use->waker),
                               .waker_process_plus_1 = 1,
                               .waker_tid = *use->waker == 'b' ? 2 : 3};
    process_of(profile, 10, "app");
    uint32_t waits_in[] = {kernel_place(profile, "futex_wait"), wait, take, run};
    uint32_t gives_in[] = {kernel_place(profile, "futex_wake"), post, give, run};
    unsigned skipped = !use->has_kernel_frames;
    assert_int_equal(
        profile_add_stack(profile, gives_in + skipped, 4 - skipped, &row.waker_stack_plus_1), 0);
    row.waker_stack_plus_1++;
    spend(profile, &waits[0], waits_in + skipped, 4 - skipped);
    SPEND(profile, waits[1], wait, take, save);
    SPEND(profile, naps, place(profile, libc, "pause"), take, save);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(profile_add_wait(profile, &row, &profile->samples[i].wait_plus_1), 0);
        profile->samples[i].wait_plus_1++;
        row.waker = row.waker_process_plus_1 = row.waker_stack_plus_1 = 0;
    }
}

static void test_a_semaphore_that_its_waiters_give_back_is_a_lock(void **state)
{
    make_semaphore(*state, &(struct use){"price", "price", "shop.c", "b", false});
    ASSERT_REPORT(*state, "Worth a look:\n"
                          "  1. 1 thread waits 9.50 s for a lock that price takes\n");
    ASSERT_REPORT(*state, "\nWaiting: 9.50 s of thread time\n");
    assert_lacks(*state, " here:\n     run > price > sem_wait");
}

static void test_a_semaphore_with_kernel_frames(void **state)
{
    make_semaphore(*state, &(struct use){"price", "price", "shop.c", "b", true});
    ASSERT_REPORT(*state, "  1. 1 thread waits 9.50 s for a lock that price takes\n");
    ASSERT_REPORT(*state, "\n      9.50      9.50        1  semaphore                 "
                          "run > price > sem_wait\n");
}

/* The workers of a pool that ends wake each other, each once. */
static void test_a_semaphore_that_is_given_back_once_is_no_lock(void **state)
{
    struct fgprof_profile *profile = *state;
    profile->has_sleeps = true;
    make_semaphore(profile, &(struct use){"_worker", "_worker", "/lib/thread.py", "b", false});
    profile->samples[0].sleeps = 1;
    assert_lacks(profile, "for a lock");
    ASSERT_REPORT(profile, "\nIdle: 19.50 s of thread time\n");
    profile->samples[0].sleeps = 2;
    ASSERT_REPORT(profile, "  1. 1 thread waits 9.50 s for a lock that _worker takes\n");
}

/* Equal functions, but another call. */
static void test_waits_that_end_otherwise_are_apart(void **state)
{
    struct fgprof_profile *profile = *state;
    struct spent others = {"a", 1, THREAD_SLEEPING, "futex", 3000, false, 0};
    make_semaphore(profile, &(struct use){"price", "price", "shop.c", "b", false});
    uint32_t libc = make_mapping(profile, 0x7f0000000000, "/usr/lib/libc.so.6", "bb");
    SPEND(profile, others, place(profile, libc, "sem_wait"),
          place_of_use(profile, 0, "price", "shop.c"), place(profile, 0, "run"));
    ASSERT_REPORT(profile, "  1. 1 thread waits 9.50 s for a lock that price takes\n");
    ASSERT_REPORT(profile, "\nWaiting: 12.50 s of thread time\n");
}

/* Threads of Python's may each wait for a semaphore of their own. */
static void test_a_lock_of_pythons(void **state)
{
    make_semaphore(*state, &(struct use){"price", "price", "/srv/shop.py", "c", false});
    ASSERT_REPORT(*state, "  1. 1 thread waits 9.50 s for a lock that price takes\n");
}

/* As a queue's, whose waits end when another thread puts something in. */
static void test_other_semaphores_are_no_locks(void **state)
{
    static const struct use uses[] = {
        {"price", "put", "shop.c", "b", false},
        {"price", "price", "shop.c", "c", false},
        {"price", "put", "shop.c", "c", false},
        {"get", "put", "/lib/queue.py", "b", false},
        {"", "", "", "b", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        struct fgprof_profile *profile = make_profile();
        profile->period_ns = 10000000;
        profile->summary.elapsed_ns = 10ull * SECOND;
        make_semaphore(profile, &uses[i]);
        assert_lacks(profile, "for a lock");
        ASSERT_REPORT(profile, "\nIdle: 19.50 s of thread time\n");
        fgprof_profile_free(profile);
    }
}

/* Paths that differ only in the middle, in the middle of a long name, or in the depth of a
 * recursion. */
static void test_no_two_rows_look_alike(void **state)
{
    enum { ROWS = 6, DEPTH = 14 };
    static const char long_name[] = "a_name_that_is_as_long_as_templates";
    struct fgprof_profile *profile = *state;
    uint32_t locations[DEPTH], recursion = place(profile, PROFILE_NO_MAPPING, "recursive_function");
    for (uint32_t row = 0; row < ROWS; row++) {
        struct spent runs = {"a", 1, THREAD_RUNNING, "", 1000 - row * 10, false, 0};
        for (size_t i = 0; i < DEPTH; i++) {
            char name[160];
            if (i == 7)
                snprintf(name, sizeof name, "%s_%u_%s", row < 3 ? long_name : "middle", row,
                         long_name);
            else
                snprintf(name, sizeof name, "function_number_%zu", i);
            locations[i] = place(profile, PROFILE_NO_MAPPING, name);
        }
        spend(profile, &runs, locations, DEPTH);
    }
    for (size_t depth = 10; depth < 13; depth++) {
        struct spent runs = {"a", 1, THREAD_RUNNING, "", 500 + depth, false, 0};
        for (size_t i = 0; i < depth; i++)
            locations[i] = recursion;
        spend(profile, &runs, locations, depth);
    }
    char *text = written(profile, FGPROF_REPORT, NULL), *rest = strstr(text, "  PATH") + 1;
    char *paths[ROWS + 3];
    size_t count = 0;
    strtok_r(rest, "\n", &rest);
    for (char *row; count < ROWS + 3 && (row = strtok_r(NULL, "\n", &rest)); count++) {
        paths[count] = row + strlen("      1.00      1.00        1");
        for (size_t i = 0; i < count; i++)
            assert_string_not_equal(paths[i], paths[count]);
    }
    assert_int_equal(count, ROWS + 3);
    free(text);
}

/* Idle time belongs to no thread, and older recordings have none. */
static void test_where_time_went(void **state)
{
    struct fgprof_profile *profile = *state;
    const uint64_t elapsed_ms[] = {3000, 500, 0, 40, 4000, 0};
    make_all(profile);
    assert_lacks(profile, "Where time went");
    make_elapsed(profile);
    for (size_t i = 0; i < sizeof elapsed_ms / sizeof *elapsed_ms; i++)
        profile->samples[i].elapsed_ns = elapsed_ms[i] * 1000000;
    ASSERT_REPORT(profile,
                  "\nWhere time went: 7.56 s elapsed, 0.02 s of it idle; parallelism: no thread "
                  "running 66.7 % of the time, 1 for 33.3 %, more for 0.0 %\n"
                  "    SELF s   TOTAL s  THREADS  STATE OR CALL             PATH\n"
                  "      4.00      4.00        1  uninterruptible: fsync    work > save > fsync\n"
                  "      3.50      3.50        1  running                   work > hash\n"
                  "      0.04      0.04        1  futex                     work > save > "
                  "__pthread_mutex_lock\n"
                  "\nOn a CPU: 9.40 s of thread time\n");
    ASSERT_REPORT(profile, "\n  app/10, 3 threads ");
    assert_has(profile, FGPROF_REPORT_JSON,
               "\"elapsed\":{\"total_ns\":7540000000,\"idle_ns\":20000000,\"paths_left_out\":0,"
               "\"paths\":[{\"self_ns\":4000000000,\"total_ns\":4000000000,\"threads\":1,"
               "\"threads_never_moved\":0,\"pid\":10,\"tid\":12,"
               "\"call\":\"uninterruptible: fsync\",");
    assert_has(profile, FGPROF_REPORT_JSON,
               "\"running_at_once_ns\":[20000000,10000000],\"on_cpu\":");
    uint32_t other;
    assert_int_equal(profile_add_process(profile, 11, "other", &other), 0);
    ASSERT_REPORT(
        profile, "\nWhere time went: 7.56 s in all, of 2 processes in 10.00 s, 0.02 s of it idle;");
}

static void test_golden_json(void **state)
{
    make_all(*state);
    assert_has(*state, FGPROF_REPORT_JSON,
               "{\"version\":1,\"recording\":{\"command\":\"fgprof-c attach -p 10 -f report\","
               "\"start_time_ns\":0,\"elapsed_ns\":10000000000,\"period_ns\":10000000,");
    assert_has(*state, FGPROF_REPORT_JSON,
               "{\"kind\":\"lock\",\"time_ns\":4000000000,\"function\":\"fsync\","
               "\"text\":\"1 thread waits 4.00 s for a lock that save takes\","
               "\"detail\":\"while not waiting, mostly in (6.00 s): work > save > fsync\"}");
    assert_has(*state, FGPROF_REPORT_JSON,
               "\"on_cpu\":{\"total_ns\":9400000000,\"paths_left_out\":0,\"paths\":["
               "{\"self_ns\":9000000000,\"total_ns\":9000000000,\"threads\":1,\"threads_never_"
               "moved\":0,\"pid\":10,"
               "\"tid\":11,\"call\":\"\",\"frames\":[\"start_thread\",\"work\",\"hash\"],"
               "\"frames_omitted\":0},");
    assert_has(*state, FGPROF_REPORT_JSON,
               "\"threads_idle\":1,\"threads\":[{\"pid\":10,\"tid\":11,\"name\":\"hot\","
               "\"running_ns\":9400000000,\"runnable_ns\":600000000,\"waiting_ns\":0,"
               "\"idle_ns\":0,\"stopped_ns\":0,\"unknown_ns\":0},");
}

static void test_nothing_sampled(void **state)
{
    ASSERT_REPORT(*state, "\nWorth a look: nothing stands out\n\nOn a CPU: 0.00 s");
    ASSERT_REPORT(*state, "fgprof-c report: no process; 10.00 s, 0 threads\n");
    ASSERT_REPORT(*state, "\n  fgprof-c attach -p PID -d 30s -o wall.html\n");
    assert_lacks(*state, "Idle");
    assert_has(*state, FGPROF_REPORT_JSON,
               "\"findings\":[],\"held_ns\":0,\"holders\":[],\"woken_ns\":0,\"wakers\":[],"
               "\"cpu_use_known_ns\":0,\"cpu_users\":[],"
               "\"elapsed\":{\"total_ns\":0,\"idle_ns\":0,\"paths_left_out\":0,\"paths\":[]},"
               "\"running_at_once_ns\":[],\"on_cpu\":");
}

/* A thread that waits for work nearly all the time is idle; one that does so for part of the time
 * waits. Waits for a CPU do not count for this. */
static void test_what_is_idle(void **state)
{
    static const struct {
        uint64_t waits_ms, runs_ms, wants_cpu_ms;
        const char *call;
        bool never_moved, is_idle;
    } cases[] = {
        {9100, 900, 0, "epoll_wait", false, true},    {8900, 1100, 0, "epoll_wait", false, false},
        {4600, 400, 5000, "epoll_wait", false, true}, {9900, 100, 0, "nanosleep", false, true},
        {9900, 100, 0, "read", false, false},         {10000, 0, 0, "read", true, true},
        {10000, 0, 0, "read", false, false},
    };
    tear_down(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_up(state);
        struct fgprof_profile *profile = *state;
        uint32_t wait = place(profile, PROFILE_NO_MAPPING, "wait_here");
        struct spent waits = {
            "a", 1, THREAD_SLEEPING, cases[i].call, cases[i].waits_ms, cases[i].never_moved, 0};
        struct spent runs = {"a", 1, THREAD_RUNNING, "", cases[i].runs_ms, false, 0};
        struct spent wants = {"a", 1, THREAD_RUNNABLE, "", cases[i].wants_cpu_ms, false, 0};
        SPEND(profile, waits, wait);
        if (cases[i].runs_ms)
            SPEND(profile, runs, wait);
        if (cases[i].wants_cpu_ms)
            SPEND(profile, wants, wait);
        char expected[64];
        snprintf(expected, sizeof expected, "\n%s: %.2f s of thread time\n",
                 cases[i].is_idle ? "Idle" : "Waiting", (double)cases[i].waits_ms / 1e3);
        ASSERT_REPORT(profile, expected);
        if (cases[i].is_idle && !cases[i].wants_cpu_ms && cases[i].runs_ms < 500)
            ASSERT_REPORT(profile, "\nWorth a look: nothing stands out; see what is idle\n");
        if (i + 1 < sizeof cases / sizeof *cases)
            tear_down(state);
    }
}

/* A thread that hangs in a lock has never moved either, but must not be called idle. */
static void test_a_wait_for_a_lock_is_never_idle(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t user = place(profile, PROFILE_NO_MAPPING, "update");
    uint32_t guard = place(profile, PROFILE_NO_MAPPING, "std::lock_guard::lock_guard");
    uint32_t lock = place(profile, PROFILE_NO_MAPPING, "___pthread_mutex_lock");
    struct spent waits = {"a", 1, THREAD_SLEEPING, "futex", 10000, true, 0};
    process_of(profile, 77, "app");
    SPEND(profile, waits, lock, guard, user);
    ASSERT_REPORT(profile, "  1. 1 thread waits 10.00 s for a lock that update takes\n"
                           "     update > ___pthread_mutex_lock\n");
    ASSERT_REPORT(profile, "Next, which thread holds the lock, if the process still runs:\n"
                           "  fgprof-c dump -p 77\n");
    assert_lacks(profile, "Idle");
    assert_lacks(profile, "  2.");
}

/* Two threads wait for both of two locks: each lock is one finding. */
static void test_threads_that_wait_for_two_locks(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t lock = place(profile, PROFILE_NO_MAPPING, "pthread_mutex_lock");
    uint32_t load = place(profile, PROFILE_NO_MAPPING, "load");
    uint32_t save = place(profile, PROFILE_NO_MAPPING, "save");
    struct spent waits = {"a", 1, THREAD_SLEEPING, "futex", 2000, false, 0};
    process_of(profile, 77, "app");
    for (; waits.tid < 4; waits.tid++, waits.time_ms += 500) {
        SPEND(profile, waits, lock, load);
        SPEND(profile, waits, lock, save);
    }
    ASSERT_REPORT(profile, "3 threads wait 7.50 s for a lock that load takes\n");
    ASSERT_REPORT(profile, "3 threads wait 7.50 s for a lock that save takes\n");
}

/* Threads with the same name are one finding; if threads are grouped by name, nothing says how many
 * they are. */
static void test_saturated_threads(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t spin = place(profile, PROFILE_NO_MAPPING, "spin");
    for (uint32_t tid = 1; tid <= 4; tid++) {
        struct spent runs = {"pool", tid, THREAD_RUNNING, "", 9100 + tid, false, 0};
        SPEND(profile, runs, spin);
    }
    ASSERT_REPORT(profile, "  1. thread \"pool\"/4 keeps a CPU busy: 91.0 % running, 0.0 % waiting "
                           "for a CPU; so do 3 more of that name\n"
                           "     100.0 % of its running time: spin\n");
    assert_lacks(profile, "  2.");
    fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME);
    ASSERT_REPORT(profile, "  1. thread \"pool\" runs 36.41 s here:\n     spin\n");
}

/* CPU contention needs waits that are long compared with the time on a CPU: short ones, such as
 * those of woken threads, do not count. */
static void test_too_few_cpus(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t spin = place(profile, PROFILE_NO_MAPPING, "spin");
    struct spent runs = {"a", 1, THREAD_RUNNING, "", 4000, false, 0};
    struct spent wants = {"a", 1, THREAD_RUNNABLE, "", 2400, false, 0};
    SPEND(profile, runs, spin);
    SPEND(profile, wants, spin);
    assert_lacks(profile, "CPU contention");
    wants.time_ms = 600;
    SPEND(profile, wants, spin);
    ASSERT_REPORT(profile, "  2. CPU contention: 3.00 s waiting for a CPU, "
                           "4.00 s running\n     most of that wait: spin\n");
    runs.time_ms = 6000;
    SPEND(profile, runs, spin);
    assert_lacks(profile, "CPU contention");
}

/* Why the recording is poor, and what would help. */
static void test_a_poor_recording(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t lib = make_mapping(profile, 0x7f0000000000, "/usr/lib/libx.so.1", "0123");
    uint32_t lost = make_location(profile, 0x7f0000000010, lib, 0, NULL), note;
    struct spent waits = {"a", 1, THREAD_SLEEPING, "read", 10000, false, 0};
    assert_int_equal(profile_add_note(profile, "[truncated: no unwind info in libx.so.1]", &note),
                     0);
    SPEND(profile, waits, lost, note);
    profile->summary.samples_cut = profile->summary.samples_unnamed = 1000;
    profile->summary.ticks_planned = 1000;
    profile->summary.ticks_late = 50;
    profile->summary.error = -ENOMEM;
    assert_int_equal(profile_add_unreadable(profile, "/gone", "damaged"), 0);
    ASSERT_REPORT(profile, "\n  2. sampling ended early, after 10.00 s: Cannot allocate memory\n"
                           "  3. 5.0 % of ticks were late");
    ASSERT_REPORT(profile, "\n  4. 100.0 % of samples have a cut stack: callers are missing\n"
                           "     most begin with [truncated: no unwind info in libx.so.1]\n"
                           "  5. 100.0 % of samples have a frame without a symbol\n"
                           "     most in /usr/lib/libx.so.1\n"
                           "  6. 1 module could not be read, such as /gone (damaged)\n");
    ASSERT_REPORT(profile, "\nSymbols that would help (Debian: PACKAGE-dbg or PACKAGE-dbgsym, see "
                           "dpkg -S FILE; or record with --debuginfod):\n"
                           "  /usr/lib/libx.so.1: 1000 cut, 1000 unnamed, build id 0123\n");
}

/* Symbol files would not help here. */
static void test_code_that_was_made_at_run_time(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t lib = make_mapping(profile, 0x7f0000000000, "/usr/lib/libx.so.1", "0123");
    uint32_t of_lib = make_location(profile, 0x7f0000000010, lib, 0, NULL);
    uint32_t anonymous = make_mapping(profile, 0x7f2000000000, "[anon]", "");
    uint32_t made = make_location(profile, 0x7f2000000010, anonymous, 0, NULL);
    struct spent spent = {"a", 1, THREAD_SLEEPING, "read", 4000, false, 0};
    SPEND(profile, spent, of_lib);
    spent.time_ms = 6000;
    SPEND(profile, spent, made);
    profile->summary.samples_unnamed = 1000;
    ASSERT_REPORT(profile, " 100.0 % of samples have a frame without a symbol\n"
                           "     most in code that was made at run time, and has no perf map\n");
    make_mapping(profile, 0x7f1000000000, "/usr/lib/jvm/17/lib/server/libjvm.so", "02");
    ASSERT_REPORT(profile, "     most in code that Java made: it has names after jcmd PID "
                           "Compiler.perfmap\n");
}

static void test_modules_that_lack_most_come_first(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t few = make_mapping(profile, 0x7f0000000000, "/usr/lib/libfew.so.1", "01");
    uint32_t many = make_mapping(profile, 0x7f1000000000, "/usr/lib/libmany.so.1", "02");
    uint32_t of_few = make_location(profile, 0x7f0000000010, few, 0, NULL);
    uint32_t of_many = make_location(profile, 0x7f1000000010, many, 0, NULL);
    struct spent spent = {"a", 1, THREAD_SLEEPING, "read", 1000, false, 0};
    SPEND(profile, spent, of_few);
    spent.time_ms = 9000;
    SPEND(profile, spent, of_many);
    profile->summary.samples_unnamed = 1000;
    ASSERT_REPORT(profile, "  /usr/lib/libmany.so.1: 0 cut, 900 unnamed, build id 02\n"
                           "  /usr/lib/libfew.so.1: 0 cut, 100 unnamed, build id 01\n");
}

/* Whatever a profile contains, its report is one page of 100 lines. */
static void make_very_much(struct fgprof_profile *profile)
{
    enum { MUCH = 300, LONG = 5000 };
    char *name = malloc(LONG);
    assert_non_null(name);
    for (uint32_t i = 0; i < MUCH; i++) {
        memset(name, 'a' + (int)(i % 26), LONG - 1);
        name[LONG - 1] = '\0';
        snprintf(name, 32, "/\x1b[2J%u\n", i);
        name[strlen(name)] = 'x';
        uint32_t lib = make_mapping(profile, 0x7f0000000000 + i * 0x100000ull, name, name);
        uint32_t user = place(profile, lib, name), leaf = place(profile, lib, name + 1);
        uint32_t lock = place(profile, PROFILE_NO_MAPPING, "pthread_mutex_lock");
        uint32_t lost =
                     make_location(profile, 0x7f0000000000 + i * 0x100000ull + 0x500, lib, 0, NULL),
                 note;
        struct spent spent = {
            name, i + 1, THREAD_RUNNING, "", 9900, false, process_of(profile, i, name)};
        assert_int_equal(profile_add_note(profile, name, &note), 0);
        assert_int_equal(profile_add_unreadable(profile, name, name), 0);
        SPEND(profile, spent, leaf, user, lost, note);
        spent.state = THREAD_RUNNABLE;
        spent.time_ms = 9000;
        SPEND(profile, spent, leaf, user, lost, note);
        spent.state = THREAD_UNINTERRUPTIBLE;
        spent.call = name;
        SPEND(profile, spent, leaf, user, lost, note);
        spent.state = THREAD_SLEEPING;
        SPEND(profile, spent, lock, user, lost, note);
        spent.tid += MUCH;
        spent.never_moved = true;
        SPEND(profile, spent, leaf, user, lost, note);
    }
    profile->summary.samples_cut = profile->summary.samples_unnamed = profile->summary.samples;
    profile->summary.ticks_planned = profile->summary.ticks_late = 1000;
    profile->summary.error = -ENOMEM;
    assert_int_equal(fgprof_profile_set_command(profile, name), 0);
    free(name);
}

static void assert_one_page(const struct fgprof_profile *profile, const char *paths_left_out)
{
    char *text = written(profile, FGPROF_REPORT, NULL), *end;
    size_t lines = 0;
    for (char *line = text; *line; line = end + 1, lines++) {
        end = strchr(line, '\n');
        assert_non_null(end);
        assert_true(end - line <= 160);
    }
    assert_in_range(lines, 80, 100);
    assert_null(strchr(text, '\x1b'));
    assert_non_null(strstr(text, "\\x1b[2J"));
    assert_non_null(strstr(text, paths_left_out));
    assert_non_null(strstr(text, "\n  and 296 more processes\n"));
    free(text);
    char *json = written(profile, FGPROF_REPORT_JSON, NULL);
    assert_true(strlen(json) < 80000);
    free(json);
}

static void test_a_report_is_one_page(void **state)
{
    make_very_much(*state);
    assert_one_page(*state, "\n  and 290 more\n\nWaiting: ");
}

/* Elapsed time takes space from the thread time. */
static void test_a_report_with_elapsed_time_is_one_page(void **state)
{
    struct fgprof_profile *profile = *state;
    make_very_much(profile);
    make_elapsed(profile);
    ASSERT_REPORT(profile, "\nWhere time went: ");
    assert_one_page(profile, "\n  and 291 more\n\nWaiting: ");
}

/* Each of many samples waits for its own owner, waker or CPU. */
static void make_holders(struct fgprof_profile *profile)
{
    static const char *const kinds[] = {"mutex", "pipe", "CPU"};
    for (uint32_t i = 0; i < 30; i++) {
        struct profile_sample *sample = &profile->samples[i * 5 + 3];
        char resource[64];
        bool is_woken = i % 3 == 1;
        snprintf(resource, sizeof resource, "%s %u", kinds[i % 3], i);
        struct profile_wait wait = {.kind = make_string(profile, kinds[i % 3]),
                                    .resource = make_string(profile, resource),
                                    .owner_process = is_woken ? PROFILE_NO_OWNER : i,
                                    .owner_name = is_woken ? 0 : sample->thread_name,
                                    .owner_stack = is_woken ? PROFILE_NO_STACK : sample->stack,
                                    .waker = is_woken ? sample->thread_name : 0,
                                    .waker_process_plus_1 = is_woken ? i + 1 : 0,
                                    .waker_stack_plus_1 = is_woken ? sample->stack + 1 : 0};
        assert_int_equal(profile_add_wait(profile, &wait, &sample->wait_plus_1), 0);
        sample->wait_plus_1++;
    }
}

static void test_a_report_with_all_kinds_of_holders_is_one_page(void **state)
{
    struct fgprof_profile *profile = *state;
    make_very_much(profile);
    make_elapsed(profile);
    make_holders(profile);
    ASSERT_REPORT(profile, "\nWhere time went: ");
    ASSERT_REPORT(profile, "\nBlocked by: ");
    ASSERT_REPORT(profile, "\nWoken by: ");
    ASSERT_REPORT(profile, "\nWaiting for a CPU: ");
    assert_one_page(profile, "\n  and 297 more\n\nWaiting: ");
}

/* As in a forged recording. */
static void test_a_cpu_user_of_no_process(void **state)
{
    struct fgprof_profile *profile = *state;
    make_very_much(profile);
    struct profile_wait wait = {.kind = make_string(profile, "CPU"),
                                .resource = make_string(profile, "CPU used by x"),
                                .owner_process = PROFILE_NO_OWNER,
                                .owner_name = make_string(profile, "nobody"),
                                .owner_stack = PROFILE_NO_STACK};
    assert_int_equal(profile_add_wait(profile, &wait, &profile->samples[1].wait_plus_1), 0);
    profile->samples[1].wait_plus_1++;
    ASSERT_REPORT(profile, "behind nobody in ");
}

/* JSON has the whole path, except the middle of a very deep one. */
static void test_a_deep_stack(void **state)
{
    enum { DEEP = 1000 };
    struct fgprof_profile *profile = *state;
    uint32_t locations[DEEP];
    char name[16];
    for (uint32_t i = 0; i < DEEP; i++) {
        snprintf(name, sizeof name, "f%u", DEEP - 1 - i);
        locations[i] = place(profile, PROFILE_NO_MAPPING, name);
    }
    struct spent runs = {"a", 1, THREAD_RUNNING, "", 4000, false, 0};
    spend(profile, &runs, locations, DEEP);
    ASSERT_REPORT(
        profile,
        "\n     f0 > ... > f990 > f991 > f992 > f993 > f994 > f995 > f996 > f997 > f998 > f999"
        "\n");
    assert_has(profile, FGPROF_REPORT_JSON,
               "\"frames\":[\"f0\",\"f1\",\"f2\",\"f3\",\"f4\","
               "\"f5\",\"f6\",\"f7\",\"f976\",");
    assert_has(profile, FGPROF_REPORT_JSON, "\"f999\"],\"frames_omitted\":968}");
}

static void test_only_kept_samples_count(void **state)
{
    struct fgprof_profile *profile = *state;
    make_all(profile);
    fgprof_profile_set_kept(profile, FGPROF_KEPT_OFF_CPU);
    ASSERT_REPORT(profile, "10.00 s, 3 threads, only time off the CPU\n");
    ASSERT_REPORT(profile, "\nOn a CPU: 0.00 s of thread time\n\nWaiting: 10.00 s");
    assert_has(profile, FGPROF_REPORT_JSON, "\"kept\":\"off-cpu\"}");
}

/* The next command is quoted for a shell. */
static void test_the_next_command(void **state)
{
    static const struct {
        const char *read_from, *recorded_by, *next;
    } cases[] = {
        {"kept.fgprof", "fgprof-c attach -p 10", "convert kept.fgprof --on-cpu -o cpu.html"},
        {"it's.fgprof", "fgprof-c attach -p 10", "convert 'it'\\''s.fgprof' --on-cpu -o cpu.html"},
        {"-x", "fgprof-c run -o x -- cmd", "convert ./-x --on-cpu -o cpu.html"},
        {NULL, "fgprof-c attach -p 10", "attach -p 10 -d 30s --on-cpu -o cpu.html"},
        {NULL, "fgprof-c run -o x -- cmd", "run --on-cpu -o cpu.html -- CMD [ARG...]"},
    };
    struct fgprof_profile *profile = *state;
    make_all(profile);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[128];
        free(profile->read_from);
        free(profile->recorded_by);
        profile->read_from = cases[i].read_from ? strdup(cases[i].read_from) : NULL;
        profile->recorded_by = strdup(cases[i].recorded_by);
        snprintf(expected, sizeof expected, "\n  fgprof-c %s\n", cases[i].next);
        ASSERT_REPORT(profile, expected);
    }
    /* The row of processes that have ended has no process id. */
    free(profile->recorded_by);
    profile->recorded_by = NULL;
    process_of(profile, 0, "app");
    process_of(profile, 12, "app");
    ASSERT_REPORT(profile, "\n  fgprof-c attach -p 10,12 -d 30s --on-cpu -o cpu.html\n");
    profile->processes[0].pid = profile->processes[2].pid = 0;
    ASSERT_REPORT(profile, "\n  fgprof-c attach -p PID -d 30s --on-cpu -o cpu.html\n");
}

static void test_how_profiles_of_a_difference_were_recorded(void **state)
{
    struct fgprof_profile *before = *state, *after = make_profile();
    make_all(before);
    before->read_from = strdup("before.fgprof");
    make_all(after);
    after->read_from = strdup("after.fgprof");
    after->summary.elapsed_ns = 5000000000u;
    assert_int_equal(fgprof_profile_set_command(after, ""), 0);
    int fd = file_of_text("");
    assert_int_equal(fgprof_profile_write_difference(before, after, FGPROF_REPORT, false, fd), 0);
    char *text = contents_of(fd, NULL);
    assert_non_null(strstr(text,
                           "fgprof-c diff\n"
                           "  before: 10.00 s, before.fgprof, recorded by: fgprof-c attach -p 10 "
                           "-f report\n"
                           "  after:  5.00 s, after.fgprof, recorded by: not known\n"));
    free(text);
    close(fd);
    fgprof_profile_free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_golden_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_how_profiles_of_a_difference_were_recorded, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_who_holds_it_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_end_of_a_thread_is_no_lock, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_paths_are_of_the_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_two_rows_look_alike, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_where_time_went, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_golden_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_sampled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_idle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_wait_for_a_lock_is_never_idle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_threads_that_wait_for_two_locks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_saturated_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_few_cpus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_poor_recording, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_code_that_was_made_at_run_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_modules_that_lack_most_come_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_report_is_one_page, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_report_with_elapsed_time_is_one_page, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_report_with_all_kinds_of_holders_is_one_page, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_cpu_user_of_no_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_semaphore_that_its_waiters_give_back_is_a_lock,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_semaphore_with_kernel_frames, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_waits_that_end_otherwise_are_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_semaphore_that_is_given_back_once_is_no_lock, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_lock_of_pythons, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_semaphores_are_no_locks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_deep_stack, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_kept_samples_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_next_command, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
