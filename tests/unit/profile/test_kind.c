#include "make_profile.h"
#include "profile/kind.h"

#include <errno.h>

static struct fgprof_profile *profile;
static uint32_t waiting, holding, running;

static uint32_t place(const char *name)
{
    return make_function(profile, 0x1000 * (profile->function_count + 1), PROFILE_NO_MAPPING, name,
                         "", 0);
}

static int set_up(void **state)
{
    (void)state;
    uint32_t process;
    profile = make_profile();
    waiting = place("lock");
    holding = place("work");
    running = place("compute");
    make_state(profile, running, THREAD_RUNNING, "", "", 5);
    make_state(profile, waiting, THREAD_SLEEPING, "nanosleep", "", 3);
    make_wait(profile, waiting, &holding, 7);
    make_wait(profile, waiting, NULL, 2);
    return profile_add_process(profile, 70, "app", &process);
}

static int tear_down(void **state)
{
    (void)state;
    profile_free(profile);
    return 0;
}

static void make(enum fgprof_kind kind)
{
    assert_int_equal(fgprof_profile_set_kind(profile, kind), 0);
    assert_int_equal(profile->kind, kind);
}

static void test_on_cpu(void **state)
{
    (void)state;
    make(FGPROF_KIND_CPU);
    assert_written(profile, FGPROF_FOLDED, "compute 5\n");
}

static void test_who_waits(void **state)
{
    (void)state;
    make(FGPROF_KIND_BLOCK);
    assert_written(profile, FGPROF_FOLDED, "lock 9\n");
}

static void test_who_is_waited_for(void **state)
{
    (void)state;
    make(FGPROF_KIND_MUTEX);
    assert_written(profile, FGPROF_FOLDED, "[not sampled then] 2\nwork 7\n");
    assert_string_equal(strings_get(&profile->strings, profile->samples[0].thread_name), "boss");
}

static void test_blame(void **state)
{
    (void)state;
    make(FGPROF_KIND_BLAME);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_THREADS), 0);
    assert_written(profile, FGPROF_FOLDED,
                   "boss;[not sampled then];[holds mutex g_lock];app;lock 2\n"
                   "boss;work;[holds mutex g_lock];app;lock 7\n");
}

/* "boss" itself waits for the end of thread "last". */
static void test_a_chain_of_blame(void **state)
{
    (void)state;
    struct profile_wait end = {
        .kind = make_string(profile, "end of a thread"),
        .resource = make_string(profile, "end of thread last"),
        .owner_name = make_string(profile, "last"),
    };
    uint32_t row;
    assert_int_equal(profile_add_stack(profile, &running, 1, &end.owner_stack), 0);
    assert_int_equal(profile_add_wait(profile, &end, &row), 0);
    for (size_t i = 0; i < profile->sample_count; i++) {
        struct profile_sample *sample = &profile->samples[i];
        if (sample->wait_plus_1)
            profile->waits[sample->wait_plus_1 - 1].owner_wait_plus_1 = row + 1;
    }
    make(FGPROF_KIND_BLAME);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_THREADS), 0);
    assert_written(profile, FGPROF_FOLDED,
                   "last;compute;[end of thread last];boss;[not sampled then];"
                   "[holds mutex g_lock];app;lock 2\n"
                   "last;compute;[end of thread last];boss;work;[holds mutex g_lock];app;lock 7\n");
}

/* Goroutines, and threads that run one, wait for a thread. Samples of that thread are equal. */
static void test_blame_is_of_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < profile->sample_count; i++) {
        struct profile_sample *sample = &profile->samples[i];
        sample->is_goroutine = i % 2;
        sample->goroutine = (uint32_t)i;
        sample->is_task = sample->never_moved = true;
    }
    make(FGPROF_KIND_BLAME);
    assert_int_equal(profile->sample_count, 2);
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        assert_string_equal(strings_get(&profile->strings, sample->thread_name), "boss");
        assert_int_equal(sample->goroutine, 0);
        assert_false(sample->is_goroutine || sample->is_task || sample->never_moved);
    }
}

/* No owner is known for these waits. */
static void test_blame_of_what_ended_a_wait(void **state)
{
    (void)state;
    struct profile_wait wait = {
        .kind = make_string(profile, "semaphore"),
        .resource = make_string(profile, "semaphore g_items"),
        .owner_process = PROFILE_NO_OWNER,
        .owner_stack = PROFILE_NO_STACK,
        .waker = make_string(profile, "putter"),
        .waker_process_plus_1 = 1,
    };
    uint32_t row, stack;
    assert_int_equal(profile_add_stack(profile, &running, 1, &stack), 0);
    wait.waker_stack_plus_1 = stack + 1;
    assert_int_equal(profile_add_wait(profile, &wait, &row), 0);
    for (size_t i = 0; i < profile->sample_count; i++) {
        if (profile->samples[i].syscall_name && !profile->samples[i].wait_plus_1)
            profile->samples[i].wait_plus_1 = row + 1;
    }
    make(FGPROF_KIND_BLAME);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_THREADS), 0);
    assert_written(profile, FGPROF_FOLDED,
                   "boss;[not sampled then];[holds mutex g_lock];app;lock 2\n"
                   "boss;work;[holds mutex g_lock];app;lock 7\n"
                   "putter;compute;[ends wait for semaphore g_items];app;lock 3\n");
}

#define COUNTED                                                                                    \
    "contentions: estimated from the kernel's count of context switches; delay: exact in each "    \
    "thread's total, with places that are sampled"

/* A wait that saw two owners is counted for one of them. */
static void test_contentions_as_text(void **state)
{
    (void)state;
    make_sleeps(profile);
    make(FGPROF_KIND_MUTEX);
    assert_written(profile, FGPROF_TEXT,
                   "--- mutex:\ncycles/second=1000000000\nsampling period=1\n"
                   "70707070 0 @ 0x2001\n# labels: {\"state\":\"sleeping\", \"thread\":\"boss\"}\n"
                   "#\t0x2000\twork+0x0\n\n"
                   "20202020 1 @ 0x1\n# labels: {\"state\":\"sleeping\", \"thread\":\"boss\"}\n"
                   "#\t0x1\t[not sampled then]\n\n"
                   "# " COUNTED "\n");
}

/* google-pprof, which reads this kind, divides by the number of contentions. */
static void test_block_as_text_has_no_zeros(void **state)
{
    (void)state;
    make_sleeps(profile);
    for (size_t i = 0; i < profile->sample_count; i++)
        profile->samples[i].sleeps = 0;
    make(FGPROF_KIND_BLOCK);
    assert_written(profile, FGPROF_TEXT,
                   "--- contention:\ncycles/second=1000000000\nsampling period=1\n"
                   "90909090 1 @ 0x1001\n# labels: {\"owner\":\"boss\", \"resource\":\"mutex "
                   "g_lock\", \"state\":\"sleeping\", \"syscall\":\"futex\", "
                   "\"thread\":\"app\", \"wait\":\"mutex\"}\n"
                   "#\t0x1000\tlock+0x0\n\n"
                   "# " COUNTED "\n");
}

/* Rows are shown if they have any delay, however short. */
static void test_delays_of_less_than_a_tick(void **state)
{
    (void)state;
    make_sleeps(profile);
    for (size_t i = 0; i < profile->sample_count; i++) {
        struct profile_sample *sample = &profile->samples[i];
        sample->sleeps = sample->count * 1000;
        sample->time_ns = sample->count == 2 ? 5000 : sample->count == 7 ? 40 : sample->time_ns;
        sample->count = 0;
    }
    make(FGPROF_KIND_MUTEX);
    char *text = written(profile, FGPROF_TEXT, NULL);
    const char *longer = strstr(text, "5000 2000 @"), *shorter = strstr(text, "40 7000 @");
    assert_true(longer && shorter && longer < shorter);
    free(text);
}

/* An old recording lacks the counts that contentions are estimated from. */
static void test_contentions_of_an_old_recording(void **state)
{
    (void)state;
    make(FGPROF_KIND_MUTEX);
    char *text = written(profile, FGPROF_TEXT, NULL);
    assert_non_null(strstr(text, "\n70707070 7 @ 0x2001\n"));
    assert_non_null(strstr(text, "\n# contentions: at how many ticks threads were seen waiting"));
    free(text);
}

static void test_the_note_is_of_contentions_only(void **state)
{
    (void)state;
    make_sleeps(profile);
    assert_null(profile_contentions_note(profile));
    make(FGPROF_KIND_BLAME);
    assert_null(profile_contentions_note(profile));
}

static void test_only_once_and_not_as_a_recording(void **state)
{
    (void)state;
    assert_int_equal(fgprof_profile_set_kind(profile, (enum fgprof_kind)5), -EINVAL);
    assert_int_equal(fgprof_profile_set_kind(profile, FGPROF_KIND_WALL), 0);
    make(FGPROF_KIND_BLOCK);
    assert_int_equal(fgprof_profile_set_kind(profile, FGPROF_KIND_MUTEX), -EINVAL);
    assert_int_equal(fgprof_profile_write(profile, FGPROF_RAW, STDOUT_FILENO), -EINVAL);
}

static void test_elapsed_time_is_of_two_kinds(void **state)
{
    (void)state;
    make_elapsed(profile);
    make(FGPROF_KIND_CPU);
    assert_true(profile->has_elapsed);
    assert_int_equal(profile->sample_count, 1);
    assert_int_equal(profile->samples[0].elapsed_ns, 10000000);
}

static void test_waits_have_no_elapsed_time(void **state)
{
    (void)state;
    make_elapsed(profile);
    make(FGPROF_KIND_BLOCK);
    assert_false(profile->has_elapsed);
    assert_int_equal(profile->sample_count, 2);
    for (size_t i = 0; i < profile->sample_count; i++)
        assert_int_equal(profile->samples[i].elapsed_ns, 0);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_ELAPSED), 0);
    assert_int_equal(fgprof_profile_write(profile, FGPROF_FOLDED, STDOUT_FILENO), -ENODATA);
}

#define WITH_PROFILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PROFILE(test_on_cpu),
        WITH_PROFILE(test_who_waits),
        WITH_PROFILE(test_who_is_waited_for),
        WITH_PROFILE(test_blame),
        WITH_PROFILE(test_a_chain_of_blame),
        WITH_PROFILE(test_blame_is_of_threads),
        WITH_PROFILE(test_blame_of_what_ended_a_wait),
        WITH_PROFILE(test_contentions_as_text),
        WITH_PROFILE(test_block_as_text_has_no_zeros),
        WITH_PROFILE(test_delays_of_less_than_a_tick),
        WITH_PROFILE(test_contentions_of_an_old_recording),
        WITH_PROFILE(test_the_note_is_of_contentions_only),
        WITH_PROFILE(test_elapsed_time_is_of_two_kinds),
        WITH_PROFILE(test_waits_have_no_elapsed_time),
        WITH_PROFILE(test_only_once_and_not_as_a_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
