/* Recordings that keep only their last part, of a child that is at a different place at each tick.
 */
#include "unit.h"
#include "fgprof.h"
#include "profile/profile.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS 1000000ull
#define FRAMES 150 /* the depth of the child's stack */
#define LIMIT_NS (60000 * MS)

struct world {
    pid_t child;
    fgprof_options *options;
    fgprof_recorder *recorder;
    bool until_short;    /* sample until the profile is much shorter than the recording, */
    unsigned until_less; /* and until stacks were forgotten so often */
    unsigned times_less;
    uint64_t until_samples;      /* or stop after so many samples, without such a profile */
    uint64_t stacks, elapsed_ns; /* at the last progress callback */
    uint64_t last_ns;            /* of the profile that is made then: */
    fgprof_profile *last;
    bool wants_moment;
    fgprof_moment *checkpoint; /* taken at the beginning */
    fgprof_profile *since;
    fgprof_profile *so_far;
    int error;
};

static int (*volatile go)(unsigned, uint64_t);

/* Each call is one of two, chosen by a bit of the path. */
__attribute__((noinline)) static int descend(unsigned depth, uint64_t path)
{
    if (!depth)
        return usleep(500);
    if (path & 1)
        return 1 + go(depth - 1, path >> 1 | path << 63);
    return go(depth - 1, path >> 1 | path << 63) - 1;
}

static void live(void)
{
    uint64_t path = 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(120);
    go = descend;
    for (;;) {
        path = path * 6364136223846793005ull + 1442695040888963407ull;
        descend(FRAMES, path);
    }
}

/* Whether the last part is clearly shorter than the recording, even on a machine that is busy with
 * other programs. */
static bool is_short(const struct world *world)
{
    return world->last->summary.elapsed_ns < world->elapsed_ns / 4 || world->elapsed_ns >= LIMIT_NS;
}

static void make_profiles(struct world *world)
{
    world->error = fgprof_recorder_profile_last(world->recorder, world->last_ns, &world->last);
    if (!world->error && world->until_short && !is_short(world)) {
        fgprof_profile_free(world->last);
        world->last = NULL;
        return;
    }
    if (!world->error && world->checkpoint)
        world->error =
            fgprof_recorder_profile_since(world->recorder, world->checkpoint, &world->since);
    if (!world->error)
        world->error = fgprof_recorder_profile_so_far(world->recorder, &world->so_far);
    fgprof_recorder_stop(world->recorder);
}

static void on_progress(const struct fgprof_progress *progress, void *context)
{
    struct world *world = context;
    if (!progress->samples || world->error || world->last)
        return;
    if (world->until_samples) {
        if (progress->samples >= world->until_samples)
            fgprof_recorder_stop(world->recorder);
        return;
    }
    if (world->wants_moment && !world->checkpoint)
        world->error = fgprof_recorder_moment(world->recorder, &world->checkpoint);
    world->times_less += progress->stacks < world->stacks;
    world->stacks = progress->stacks;
    world->elapsed_ns = progress->elapsed_ns;
    if (!world->error && (world->times_less >= world->until_less || world->elapsed_ns >= LIMIT_NS))
        make_profiles(world);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    world->child = fork();
    if (world->child == 0)
        live();
    return world->child < 0 || fgprof_options_new(&world->options) ||
           fgprof_options_set_rate(world->options, 1000) ||
           fgprof_options_set_progress(world->options, on_progress, world);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    kill(world->child, SIGKILL);
    waitpid(world->child, NULL, 0);
    fgprof_profile_free(world->last);
    fgprof_profile_free(world->since);
    fgprof_profile_free(world->so_far);
    fgprof_recorder_free(world->recorder);
    fgprof_moment_free(world->checkpoint);
    fgprof_options_free(world->options);
    free(world);
    return 0;
}

/* Records, and returns the profile at the end. */
static fgprof_profile *record(struct world *world, uint64_t keep_ns, uint64_t bytes)
{
    fgprof_profile *profile;
    assert_int_equal(fgprof_options_set_keep(world->options, keep_ns, bytes), 0);
    assert_int_equal(fgprof_recorder_new(world->options, &world->recorder), 0);
    assert_int_equal(fgprof_recorder_attach(world->recorder, world->child), 0);
    assert_int_equal(fgprof_recorder_run(world->recorder, &profile), 0);
    assert_int_equal(world->error, 0);
    assert_true(world->last || world->until_samples);
    return profile;
}

/* The samples add up to the profile's length, and so do the timelines, all of which are within it.
 */
static void assert_adds_up(const fgprof_profile *profile)
{
    uint64_t elapsed_ns = profile->summary.elapsed_ns, counted_ns = 0, elapsed_sum_ns = 0;
    for (size_t i = 0; i < profile->sample_count; i++) {
        counted_ns += profile->samples[i].time_ns;
        elapsed_sum_ns += profile->samples[i].elapsed_ns;
    }
    assert_int_equal(elapsed_sum_ns, elapsed_ns);
    /* A wait for a CPU is counted when it ends, including its part before the profile. */
    assert_in_range(counted_ns, elapsed_ns / 3, 2 * elapsed_ns);
    assert_true(profile->has_timelines);
    assert_int_equal(profile->timeline_count, 1);
    uint64_t end_ns = profile->timelines[0].begin_ns;
    for (size_t i = 0; i < profile->run_count; i++)
        end_ns += profile->runs[i].time_ns;
    assert_in_range(end_ns, elapsed_ns / 2, elapsed_ns / 10 * 11);
    assert_true(profile->summary.ticks_taken > 0);
    assert_true(profile->summary.ticks_taken <= profile->summary.ticks_planned);
}

static void test_the_last_part_is_kept(void **state)
{
    struct world *world = *state;
    world->until_short = true;
    world->until_less = 1;
    world->last_ns = 600 * MS;
    fgprof_profile *at_end = record(world, 1000 * MS, 0);
    assert_true(world->times_less > 0);
    assert_true(world->last->summary.elapsed_ns >= world->last_ns);
    assert_true(world->so_far->summary.elapsed_ns > world->last->summary.elapsed_ns);
    assert_true(world->so_far->summary.elapsed_ns < world->elapsed_ns);
    assert_true(at_end->summary.elapsed_ns < world->elapsed_ns);
    assert_adds_up(world->last);
    assert_adds_up(world->so_far);
    assert_adds_up(at_end);
    fgprof_profile_free(at_end);
}

/* A checkpoint that the caller holds is kept. */
static void test_a_checkpoint_of_the_callers(void **state)
{
    struct world *world = *state;
    world->until_short = true;
    world->last_ns = 500 * MS;
    world->wants_moment = true;
    fgprof_profile *at_end = record(world, 500 * MS, 0);
    uint64_t counted_ns = 0;
    for (size_t i = 0; i < world->since->sample_count; i++)
        counted_ns += world->since->samples[i].time_ns;
    assert_true(world->since->summary.elapsed_ns > world->so_far->summary.elapsed_ns);
    assert_in_range(counted_ns, world->since->summary.elapsed_ns / 10 * 9,
                    world->since->summary.elapsed_ns / 10 * 13);
    fgprof_profile_free(at_end);
}

static void test_memory_is_bounded(void **state)
{
    struct world *world = *state;
    world->until_less = 2;
    world->wants_moment = true;
    world->last_ns = 3600 * 1000 * MS;
    fgprof_profile *at_end = record(world, 3600 * 1000 * MS, 1 << 20);
    assert_int_equal(world->times_less, 2);
    assert_true(world->last->summary.elapsed_ns < world->elapsed_ns);
    assert_true(world->last->summary.elapsed_ns >= 1000 * MS);
    /* Some of what the recording had at that checkpoint has been forgotten. */
    assert_true(world->since->summary.elapsed_ns < world->elapsed_ns / 10 * 9);
    assert_adds_up(world->last);
    assert_adds_up(at_end);
    fgprof_profile_free(at_end);
}

static void test_stacks_may_be_kept_in_any_case(void **state)
{
    struct world *world = *state;
    world->until_short = true;
    world->last_ns = 500 * MS;
    fgprof_profile *at_end = record(world, 500 * MS, UINT64_MAX);
    assert_int_equal(world->times_less, 0);
    assert_true(world->so_far->summary.elapsed_ns >= world->elapsed_ns);
    assert_true(at_end->summary.elapsed_ns > world->elapsed_ns);
    assert_true(world->last->summary.elapsed_ns < world->elapsed_ns / 4);
    assert_adds_up(world->last);
    /* Timelines cover the last part only. */
    assert_true(world->so_far->timelines[0].begin_ns > world->so_far->summary.elapsed_ns / 10);
    fgprof_profile_free(at_end);
}

/* 1 MiB holds about 800 stacks of 150 frames. All that was counted is kept. */
static void test_a_whole_recording_is_bounded(void **state)
{
    struct world *world = *state;
    world->until_samples = 4000;
    fgprof_profile *at_end = record(world, 0, 1 << 20);
    const struct fgprof_summary *summary = &at_end->summary;
    uint64_t count = 0, all_ns = 0;
    for (size_t i = 0; i < at_end->sample_count; i++) {
        count += at_end->samples[i].count;
        all_ns += at_end->samples[i].time_ns;
    }
    assert_in_range(summary->stacks, 100, 1500);
    assert_in_range(summary->samples_not_kept, summary->samples / 2, summary->samples - 100);
    assert_false(summary->ended_are_joined); /* its only thread still runs */
    assert_int_equal(count, summary->samples);
    assert_in_range(all_ns, summary->elapsed_ns / 10 * 9, summary->elapsed_ns / 10 * 13);
    fgprof_profile_free(at_end);
}

/* The same if the last part is kept separately. */
static void test_stacks_since_the_start_are_bounded(void **state)
{
    struct world *world = *state;
    world->until_samples = 4000;
    assert_int_equal(fgprof_options_set_keep_stacks(world->options, true), 0);
    fgprof_profile *at_end = record(world, 500 * MS, 1 << 20);
    const struct fgprof_summary *summary = &at_end->summary;
    uint64_t count = 0;
    for (size_t i = 0; i < at_end->sample_count; i++)
        count += at_end->samples[i].count;
    assert_in_range(summary->stacks, 100, 1000);
    assert_in_range(summary->samples_not_kept, summary->samples / 2, summary->samples - 100);
    assert_int_equal(count, summary->samples);
    assert_true(summary->samples >= world->until_samples); /* since the start */
    fgprof_profile_free(at_end);
}

static void test_what_can_be_kept(void **state)
{
    struct world *world = *state;
    assert_int_equal(fgprof_options_set_keep(world->options, 0, 0), -ERANGE);
    assert_int_equal(fgprof_options_set_keep(world->options, 0, 1), -ERANGE);
    assert_int_equal(fgprof_options_set_keep(world->options, 0, 1 << 20), 0);
    assert_int_equal(fgprof_options_set_keep(world->options, 1, 1), -ERANGE);
    assert_int_equal(fgprof_options_set_keep(world->options, 1, (1 << 20) - 1), -ERANGE);
    assert_int_equal(fgprof_options_set_keep(world->options, 1, 1 << 20), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_last_part_is_kept),
        TEST(test_a_checkpoint_of_the_callers),
        TEST(test_memory_is_bounded),
        TEST(test_stacks_may_be_kept_in_any_case),
        TEST(test_a_whole_recording_is_bounded),
        TEST(test_stacks_since_the_start_are_bounded),
        TEST(test_what_can_be_kept),
    };
    return cmocka_run_group_tests_name("keep", tests, NULL, NULL);
}
