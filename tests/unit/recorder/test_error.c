/* Which error a recording reports if both of its threads fail. The test replaces both threads. */
#include "unit.h"
#include "base/clock.h"
#include "profile/profile.h"
#include "recorder/recorder.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

int __wrap_sampler_run(struct sampler *sampler);
int __wrap_worker_run(struct worker *worker);

static struct world {
    struct fgprof_recorder *recorder;
    pid_t child;
    int sampler_error, worker_error;
    bool is_sampler_first;
} world;

static int noted_error(void)
{
    pthread_mutex_lock(&world.recorder->lock);
    int error = world.recorder->error;
    pthread_mutex_unlock(&world.recorder->lock);
    return error;
}

static void await_error(void)
{
    while (!noted_error())
        usleep(1000);
}

int __wrap_sampler_run(struct sampler *sampler)
{
    if (!world.is_sampler_first)
        await_error();
    sampler->clock.end_ns = monotonic_ns();
    return world.sampler_error;
}

int __wrap_worker_run(struct worker *worker)
{
    (void)worker;
    if (world.is_sampler_first)
        await_error();
    return world.worker_error;
}

static int set_up(void **state)
{
    (void)state;
    fgprof_options *options;
    world = (struct world){.child = fork()};
    if (world.child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    assert_int_equal(fgprof_options_new(&options), 0);
    assert_int_equal(fgprof_recorder_new(options, &world.recorder), 0);
    fgprof_options_free(options);
    return fgprof_recorder_attach(world.recorder, world.child);
}

static int tear_down(void **state)
{
    (void)state;
    fgprof_recorder_free(world.recorder);
    kill(world.child, SIGKILL);
    return waitpid(world.child, NULL, 0) != world.child;
}

static void assert_reported(int error)
{
    fgprof_profile *profile;
    assert_int_equal(fgprof_recorder_run(world.recorder, &profile), 0);
    assert_int_equal(profile->summary.error, error);
    fgprof_profile_free(profile);
}

static void test_success_of_one_does_not_hide_the_others_error(void **state)
{
    (void)state;
    world.worker_error = -ENOMEM;
    assert_reported(-ENOMEM);
}

static void test_the_first_error_stands(void **state)
{
    (void)state;
    world.worker_error = -ENOMEM;
    world.sampler_error = -EIO;
    assert_reported(-ENOMEM);
}

static void test_the_samplers_error_stands_if_it_is_first(void **state)
{
    (void)state;
    world.is_sampler_first = true;
    world.worker_error = -ENOMEM;
    world.sampler_error = -EIO;
    assert_reported(-EIO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_success_of_one_does_not_hide_the_others_error),
        TEST(test_the_first_error_stands),
        TEST(test_the_samplers_error_stands_if_it_is_first),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
