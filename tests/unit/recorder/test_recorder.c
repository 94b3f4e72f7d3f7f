/* Recordings of a child that alternately works and sleeps. */
#include "unit.h"
#include "base/clock.h"
#include "profile/profile.h"
#include "recorder/recorder.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define RUNS_MAX 10
#define RATE_HZ 500
/* With so many turns of the child and ticks that were on time, there are more runs than RUNS_MAX,
 * however long that takes on a busy machine. */
#define ENOUGH 100

struct child {
    pid_t pid;
    atomic_uint turns; /* turns taken so far */
};

static _Noreturn void take_turns(struct child *child)
{
    struct timespec nap = {0, 2000000};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(100);
    for (;; child->turns++) {
        uint64_t until_ns = monotonic_ns() + 2000000;
        while (monotonic_ns() < until_ns) {
        }
        nanosleep(&nap, NULL);
    }
}

static int set_up(void **state)
{
    struct child *child =
        mmap(NULL, sizeof *child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(child != MAP_FAILED);
    pid_t pid = fork();
    if (pid == 0)
        take_turns(child);
    child->pid = pid;
    *state = child;
    return pid < 0;
}

static int tear_down(void **state)
{
    struct child *child = *state;
    pid_t pid = child->pid;
    munmap(child, sizeof *child);
    kill(pid, SIGKILL);
    return waitpid(pid, NULL, 0) != pid;
}

/* A recording that goes on until there are enough turns and ticks. */
struct part {
    struct fgprof_recorder *recorder;
    const struct child *child;
    unsigned turns_before;
};

static void end_once_there_is_enough(const struct fgprof_progress *progress, void *context)
{
    const struct part *part = context;
    uint64_t ticks = progress->elapsed_ns * RATE_HZ / 1000000000u - progress->ticks_late;
    if (ticks >= ENOUGH && part->child->turns - part->turns_before >= ENOUGH)
        fgprof_recorder_stop(part->recorder);
}

/* Records the child with timelines that are full after `runs_max` runs. */
static struct fgprof_profile *record(const struct child *child, size_t runs_max)
{
    struct part part = {.child = child, .turns_before = child->turns};
    struct fgprof_options *options;
    struct fgprof_profile *profile;
    assert_int_equal(fgprof_options_new(&options), 0);
    assert_int_equal(fgprof_options_set_rate(options, RATE_HZ), 0);
    assert_int_equal(fgprof_options_set_duration_ns(options, 60000000000), 0);
    assert_int_equal(fgprof_options_set_progress(options, end_once_there_is_enough, &part), 0);
    assert_int_equal(fgprof_options_set_timeline(options, true), 0);
    assert_int_equal(fgprof_recorder_new(options, &part.recorder), 0);
    fgprof_options_free(options);
    assert_int_equal(part.recorder->results.timeline.runs_max, TIMELINE_RUNS_MAX);
    part.recorder->results.timeline.runs_max = runs_max;
    assert_int_equal(fgprof_recorder_attach(part.recorder, child->pid), 0);
    assert_int_equal(fgprof_recorder_run(part.recorder, &profile), 0);
    fgprof_recorder_free(part.recorder);
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
    struct fgprof_profile *profile = record(*state, TIMELINE_RUNS_MAX);
    assert_true(profile->run_count > RUNS_MAX);
    assert_int_equal(profile->summary.timeline_lost_ns, 0);
    assert_int_equal(shown_ns(profile), sampled_ns(profile));
    char *text = written(profile);
    assert_null(strstr(text, "ends early"));
    free(text);
    fgprof_profile_free(profile);
}

/* Counting goes on. */
static void test_a_full_timeline_ends_and_says_so(void **state)
{
    struct fgprof_profile *profile = record(*state, RUNS_MAX);
    const struct fgprof_summary *summary = &profile->summary;
    assert_true(profile->run_count <= RUNS_MAX);
    assert_true(summary->timeline_lost_ns > 0);
    assert_int_equal(shown_ns(profile) + summary->timeline_lost_ns, sampled_ns(profile));
    char *text = written(profile);
    assert_non_null(strstr(text, "(ends early: timelines were full)"));
    free(text);
    fgprof_profile_free(profile);
}

/* Whether a recording with these options has timelines. */
static bool has_timelines(const fgprof_options *options)
{
    struct fgprof_recorder *recorder;
    assert_int_equal(fgprof_recorder_new(options, &recorder), 0);
    bool is_wanted = recorder->results.timeline.is_wanted;
    fgprof_recorder_free(recorder);
    return is_wanted;
}

static void test_slow_spans_have_no_timelines(void **state)
{
    struct fgprof_options *options;
    (void)state;
    assert_int_equal(fgprof_options_new(&options), 0);
    assert_int_equal(fgprof_options_set_timeline(options, true), 0);
    assert_true(has_timelines(options));
    assert_int_equal(fgprof_options_set_slow(options, "route", 1000), 0);
    assert_false(has_timelines(options));
    assert_int_equal(fgprof_options_set_timeline(options, false), 0);
    assert_int_equal(fgprof_options_set_keep(options, 1000000000, 0), 0);
    assert_false(has_timelines(options));
    fgprof_options_free(options);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_timeline_holds_what_was_sampled),
        TEST(test_a_full_timeline_ends_and_says_so),
        TEST(test_slow_spans_have_no_timelines),
    };
    return cmocka_run_group_tests_name("recorder", tests, NULL, NULL);
}
