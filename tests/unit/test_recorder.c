/* Recordings of a child that works and sleeps by turns. */
#include "unit.h"
#include "profile/profile.h"
#include "recorder/recorder.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define RUNS_MAX 10

static _Noreturn void take_turns(void)
{
    struct timespec nap = {0, 2000000};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(30);
    for (;;) {
        uint64_t until_ns = monotonic_ns() + 2000000;
        while (monotonic_ns() < until_ns) {
        }
        nanosleep(&nap, NULL);
    }
}

static int set_up(void **state)
{
    pid_t child = fork();
    if (child == 0)
        take_turns();
    *state = (void *)(intptr_t)child;
    return child < 0;
}

static int tear_down(void **state)
{
    pid_t child = (pid_t)(intptr_t)*state;
    kill(child, SIGKILL);
    return waitpid(child, NULL, 0) != child;
}

/* A recording of `child` whose timelines are full after so many runs. */
static struct fgprof_profile *record(pid_t child, size_t runs_max)
{
    struct fgprof_options *options;
    struct fgprof_recorder *recorder;
    struct fgprof_profile *profile;
    assert_int_equal(fgprof_options_new(&options), 0);
    assert_int_equal(fgprof_options_set_rate(options, 500), 0);
    assert_int_equal(fgprof_options_set_duration_ns(options, 700000000), 0);
    assert_int_equal(fgprof_options_set_timeline(options, true), 0);
    assert_int_equal(fgprof_recorder_new(options, &recorder), 0);
    fgprof_options_free(options);
    assert_int_equal(recorder->recording.timeline.runs_max, TIMELINE_RUNS_MAX);
    recorder->recording.timeline.runs_max = runs_max;
    assert_int_equal(fgprof_recorder_attach(recorder, child), 0);
    assert_int_equal(fgprof_recorder_run(recorder, &profile), 0);
    fgprof_recorder_free(recorder);
    return profile;
}

static uint64_t sampled_ns(const struct fgprof_profile *profile)
{
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < profile->sample_count; i++)
        sum_ns += profile->samples[i].time_ns;
    return sum_ns;
}

static uint64_t shown_ns(const struct fgprof_profile *profile)
{
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < profile->run_count; i++)
        sum_ns += profile->runs[i].sample == PROFILE_NO_SAMPLE ? 0 : profile->runs[i].time_ns;
    return sum_ns;
}

static char *written(const struct fgprof_profile *profile)
{
    size_t length;
    int fd = file_of("", 0);
    assert_int_equal(fgprof_profile_write(profile, FGPROF_SPEEDSCOPE, fd), 0);
    char *text = contents_of(fd, &length);
    close(fd);
    return text;
}

static void test_a_timeline_holds_what_was_sampled(void **state)
{
    struct fgprof_profile *profile = record((pid_t)(intptr_t)*state, TIMELINE_RUNS_MAX);
    assert_true(profile->run_count > RUNS_MAX);
    assert_int_equal(fgprof_profile_summary(profile)->timeline_lost_ns, 0);
    assert_int_equal(shown_ns(profile), sampled_ns(profile));
    char *text = written(profile);
    assert_null(strstr(text, "ends early"));
    free(text);
    fgprof_profile_free(profile);
}

/* Counting goes on. */
static void test_a_full_timeline_ends_and_says_so(void **state)
{
    struct fgprof_profile *profile = record((pid_t)(intptr_t)*state, RUNS_MAX);
    const struct fgprof_summary *summary = fgprof_profile_summary(profile);
    assert_true(profile->run_count <= RUNS_MAX);
    assert_true(summary->timeline_lost_ns > 0);
    assert_int_equal(shown_ns(profile) + summary->timeline_lost_ns, sampled_ns(profile));
    char *text = written(profile);
    assert_non_null(strstr(text, "(ends early: timelines were full)"));
    free(text);
    fgprof_profile_free(profile);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_timeline_holds_what_was_sampled),
        TEST(test_a_full_timeline_ends_and_says_so),
    };
    return cmocka_run_group_tests_name("recorder", tests, NULL, NULL);
}
