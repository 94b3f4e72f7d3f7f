/* The start time of a profile if the clock is set during the recording. The test replaces the
 * clock. */
#include "unit.h"
#include "base/clock.h"
#include "profile/profile.h"
#include "recorder/recorder.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define HOUR_NS (3600ull * NS_PER_S)

uint64_t __wrap_wall_ns(void);
uint64_t __real_wall_ns(void);

static _Atomic uint64_t step_ns; /* how far the clock has been set, also backwards */

uint64_t __wrap_wall_ns(void)
{
    return __real_wall_ns() + step_ns;
}

/* The recording, and how far the clock is set meanwhile. */
struct world {
    pid_t child;
    struct fgprof_recorder *recorder;
    uint64_t step_ns;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    step_ns = 0;
    world->child = fork();
    if (world->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(100);
        for (;;)
            pause();
    }
    return world->child < 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    kill(world->child, SIGKILL);
    waitpid(world->child, NULL, 0);
    fgprof_recorder_free(world->recorder);
    free(world);
    return 0;
}

static void set_clock(const struct fgprof_progress *progress, void *context)
{
    const struct world *world = context;
    if (!progress->ticks)
        return;
    step_ns = world->step_ns;
    fgprof_recorder_stop(world->recorder);
}

/* Returns the start time in the profile. */
static uint64_t record(struct world *world)
{
    struct fgprof_options *options;
    struct fgprof_profile *profile;
    assert_int_equal(fgprof_options_new(&options), 0);
    assert_int_equal(fgprof_options_set_progress(options, set_clock, world), 0);
    assert_int_equal(fgprof_recorder_new(options, &world->recorder), 0);
    fgprof_options_free(options);
    assert_int_equal(fgprof_recorder_attach(world->recorder, world->child), 0);
    assert_int_equal(fgprof_recorder_run(world->recorder, &profile), 0);
    uint64_t start_ns = profile->start_time_ns;
    fgprof_profile_free(profile);
    return start_ns;
}

/* The start time follows the clock as it is set now, so that consecutive profiles are in order. */
static void check_step(struct world *world, uint64_t by_ns)
{
    world->step_ns = by_ns;
    uint64_t before_ns = __real_wall_ns() + by_ns;
    uint64_t start_ns = record(world);
    uint64_t after_ns = __real_wall_ns() + by_ns;
    assert_in_range(start_ns, before_ns, after_ns);
}

static void test_the_clock_is_set_forward(void **state)
{
    check_step(*state, HOUR_NS);
}

static void test_the_clock_is_set_back(void **state)
{
    check_step(*state, -HOUR_NS);
}

/* Clocks drift and are adjusted gradually: that does not move the start time. */
static void test_the_clock_drifts(void **state)
{
    struct world *world = *state;
    world->step_ns = NS_PER_S / 10;
    uint64_t start_ns = record(world);
    assert_int_equal(start_ns, world->recorder->sampler.clock.start_time_ns);
}

/* However late it is first sampled. */
static void test_a_command_began_when_it_was_started(void **state)
{
    struct world *world = *state;
    struct fgprof_options *options;
    struct fgprof_profile *profile;
    char sleep[] = "sleep", seconds[] = "0.5", *command[] = {sleep, seconds, NULL};
    assert_int_equal(fgprof_options_new(&options), 0);
    assert_int_equal(fgprof_recorder_new(options, &world->recorder), 0);
    fgprof_options_free(options);
    uint64_t before_ns = __real_wall_ns();
    assert_int_equal(fgprof_recorder_spawn(world->recorder, command, -1), 0);
    uint64_t after_ns = __real_wall_ns();
    usleep(200000);
    assert_int_equal(fgprof_recorder_run(world->recorder, &profile), 0);
    assert_in_range(profile->start_time_ns, before_ns, after_ns);
    fgprof_profile_free(profile);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_clock_is_set_forward),
        TEST(test_the_clock_is_set_back),
        TEST(test_the_clock_drifts),
        TEST(test_a_command_began_when_it_was_started),
    };
    return cmocka_run_group_tests_name("wall_clock", tests, NULL, NULL);
}
