/* Profiles of a process while it is being sampled: a child that sleeps. */
#include "unit.h"
#include "fgprof.h"
#include "proc/procfs.h"
#include "profile/function_times.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
    pid_t child;
    fgprof_options *options;
    fgprof_recorder *recorder;
    fgprof_profile *first, *second; /* so far */
    fgprof_moment *checkpoint;      /* between them */
    int error;                      /* of any call after sampling had begun */
};

/* Asks for two profiles, and then for the end. */
static void on_progress(const struct fgprof_progress *progress, void *context)
{
    struct world *world = context;
    if (!progress->samples || world->error || world->second)
        return;
    world->error = fgprof_recorder_profile_so_far(world->recorder,
                                                  world->first ? &world->second : &world->first);
    if (world->error || world->second)
        fgprof_recorder_stop(world->recorder);
}

static bool is_asleep(pid_t pid)
{
    struct proc_stat stat;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return procfs_stat(AT_FDCWD, path, &stat) == 0 && stat.state == 'S';
}

static int set_up_with(void **state, bool keeps_idle, enum fgprof_threads threads)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    world->child = fork();
    if (world->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(60);
        for (;;)
            pause();
    }
    for (int waited_ms = 0; !is_asleep(world->child) && waited_ms < 20000; waited_ms++)
        usleep(1000);
    return world->child < 0 || fgprof_options_new(&world->options) ||
           fgprof_options_set_duration_ns(world->options, 30000000000) ||
           fgprof_options_set_idle(world->options, keeps_idle) ||
           fgprof_options_set_threads(world->options, threads) ||
           (fgprof_options_set_progress(world->options, on_progress, world),
            fgprof_recorder_new(world->options, &world->recorder)) ||
           fgprof_recorder_attach(world->recorder, world->child);
}

static int set_up(void **state)
{
    return set_up_with(state, true, FGPROF_THREADS_BY_NAME);
}

static int set_up_without_idle(void **state)
{
    return set_up_with(state, false, FGPROF_THREADS_BY_NAME);
}

static int set_up_by_id(void **state)
{
    return set_up_with(state, true, FGPROF_THREADS_BY_ID);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    kill(world->child, SIGKILL);
    waitpid(world->child, NULL, 0);
    fgprof_profile_free(world->first);
    fgprof_profile_free(world->second);
    fgprof_moment_free(world->checkpoint);
    fgprof_recorder_free(world->recorder);
    fgprof_options_free(world->options);
    free(world);
    return 0;
}

/* The time in the function that the child waits in. */
static uint64_t time_in_pause(const fgprof_profile *profile)
{
    struct fgprof_function *rows;
    size_t count;
    uint64_t time_ns = 0;
    assert_int_equal(profile_functions(profile, NULL, 0, &rows, &count), 0);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].name && strstr(rows[i].name, "pause"))
            time_ns += rows[i].self_ns;
    }
    free(rows);
    return time_ns;
}

static void test_profiles_while_sampling_goes_on(void **state)
{
    struct world *world = *state;
    fgprof_profile *last;
    assert_int_equal(fgprof_recorder_run(world->recorder, &last), 0);
    assert_int_equal(world->error, 0);
    const fgprof_profile *const profiles[] = {world->first, world->second, last};
    uint64_t elapsed_ns = 0, time_ns = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(profiles[i]);
        const struct fgprof_summary *summary = &profiles[i]->summary;
        uint64_t in_pause_ns = time_in_pause(profiles[i]);
        assert_true(summary->elapsed_ns > elapsed_ns);
        assert_true(in_pause_ns > time_ns);
        assert_true(in_pause_ns <= summary->elapsed_ns);
        assert_int_equal(summary->threads_seen, 1);
        elapsed_ns = summary->elapsed_ns;
        time_ns = in_pause_ns;
    }
    fgprof_profile *at_end;
    assert_int_equal(fgprof_recorder_profile_so_far(world->recorder, &at_end), 0);
    assert_int_equal(at_end->summary.elapsed_ns, last->summary.elapsed_ns);
    assert_int_equal(at_end->summary.ticks_taken, last->summary.ticks_taken);
    assert_int_equal(time_in_pause(at_end), time_in_pause(last));
    fgprof_profile_free(at_end);
    fgprof_profile_free(last);
}

/* Only at the end is it known which threads never moved. Until then threads are kept separate, just
 * for that. */
static void test_threads_that_have_not_moved_yet(void **state)
{
    struct world *world = *state;
    fgprof_profile *last;
    struct fgprof_activity *rows;
    size_t count;
    assert_int_equal(fgprof_recorder_run(world->recorder, &last), 0);
    assert_int_equal(world->error, 0);
    assert_int_equal(profile_activities(world->second, &rows, &count), 0);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rows[i].tid, 0);
    free(rows);
    assert_int_equal(world->second->summary.threads_idle, 0);
    assert_int_equal(last->summary.threads_idle, 1);
    assert_int_equal(time_in_pause(last), 0);
    fgprof_profile_free(last);
}

/* The samples are marked if they are kept. */
static void test_threads_that_never_moved_are_marked(void **state)
{
    struct world *world = *state;
    fgprof_profile *last;
    assert_int_equal(fgprof_recorder_run(world->recorder, &last), 0);
    assert_int_equal(world->error, 0);
    assert_true(world->second->sample_count > 0 && last->sample_count > 0);
    for (size_t i = 0; i < world->second->sample_count; i++)
        assert_false(world->second->samples[i].never_moved);
    for (size_t i = 0; i < last->sample_count; i++)
        assert_true(last->samples[i].never_moved || sample_is_idle(&last->samples[i]));
    assert_int_equal(last->summary.threads_idle, 0);
    fgprof_profile_free(last);
}

static void test_there_is_none_before_the_start(void **state)
{
    struct world *world = *state;
    fgprof_profile *profile;
    fgprof_moment *checkpoint;
    assert_int_equal(fgprof_recorder_profile_so_far(world->recorder, &profile), -ESRCH);
    assert_int_equal(fgprof_recorder_moment(world->recorder, &checkpoint), -ESRCH);
}

/* Asks for a checkpoint, then for a profile since then, then for the end. */
static void on_progress_since(const struct fgprof_progress *progress, void *context)
{
    struct world *world = context;
    if (!progress->samples || world->error || world->second)
        return;
    if (!world->first)
        world->error = fgprof_recorder_profile_so_far(world->recorder, &world->first);
    else if (!world->checkpoint)
        world->error = fgprof_recorder_moment(world->recorder, &world->checkpoint);
    else
        world->error =
            fgprof_recorder_profile_since(world->recorder, world->checkpoint, &world->second);
    if (world->error || world->second)
        fgprof_recorder_stop(world->recorder);
}

static int set_up_asking(void **state, bool keeps_idle, fgprof_progress_fn *ask)
{
    int failed = set_up_with(state, keeps_idle, FGPROF_THREADS_BY_NAME);
    struct world *world = *state;
    fgprof_options_set_progress(world->options, ask, world);
    fgprof_recorder_free(world->recorder);
    world->recorder = NULL;
    return failed || fgprof_recorder_new(world->options, &world->recorder) ||
           fgprof_recorder_attach(world->recorder, world->child);
}

static int set_up_since(void **state)
{
    return set_up_asking(state, true, on_progress_since);
}

static void on_progress_moment(const struct fgprof_progress *progress, void *context)
{
    struct world *world = context;
    if (!progress->samples || world->error || world->checkpoint)
        return;
    world->error = fgprof_recorder_moment(world->recorder, &world->checkpoint);
    fgprof_recorder_stop(world->recorder);
}

static int set_up_moment_without_idle(void **state)
{
    return set_up_asking(state, false, on_progress_moment);
}

/* Idle threads are dropped from the profile since a checkpoint, as from the whole one, not
 * subtracted. */
static void test_since_a_moment_without_idle(void **state)
{
    struct world *world = *state;
    fgprof_profile *last, *since;
    assert_int_equal(fgprof_recorder_run(world->recorder, &last), 0);
    assert_int_equal(world->error, 0);
    assert_int_equal(fgprof_recorder_profile_since(world->recorder, world->checkpoint, &since), 0);
    assert_int_equal(last->summary.samples, 0);
    assert_int_equal(since->summary.samples, 0);
    assert_int_equal(since->summary.samples_cut, 0);
    assert_int_equal(since->summary.threads_idle, 1);
    assert_true(since->summary.idle_ns > 0);
    assert_true(since->summary.idle_ns < last->summary.idle_ns);
    fgprof_profile_free(since);
    fgprof_profile_free(last);
}

/* Asks for two consecutive parts, and for the end. */
static void on_progress_next(const struct fgprof_progress *progress, void *context)
{
    struct world *world = context;
    if (!progress->samples || world->error || world->second)
        return;
    world->error = fgprof_recorder_profile_next(world->recorder, &world->checkpoint,
                                                world->first ? &world->second : &world->first);
    if (world->error || world->second)
        fgprof_recorder_stop(world->recorder);
}

static int set_up_next(void **state)
{
    return set_up_asking(state, true, on_progress_next);
}

/* Sampling ends while the callback waits for its profile, or before it asks. */
static void on_progress_at_the_end(const struct fgprof_progress *progress, void *context)
{
    struct world *world = context;
    if (!progress->samples || world->first)
        return;
    fgprof_recorder_stop(world->recorder);
    world->error = fgprof_recorder_profile_so_far(world->recorder, &world->first);
}

static int set_up_at_the_end(void **state)
{
    return set_up_asking(state, true, on_progress_at_the_end);
}

static void test_a_profile_at_the_very_end(void **state)
{
    struct world *world = *state;
    fgprof_profile *last;
    assert_int_equal(fgprof_recorder_run(world->recorder, &last), 0);
    assert_int_equal(world->error, 0);
    assert_true(time_in_pause(world->first) > 0);
    assert_true(time_in_pause(world->first) <= time_in_pause(last));
    fgprof_profile_free(last);
}

static void check_since(const fgprof_profile *so_far, const fgprof_profile *since,
                        const fgprof_profile *last)
{
    const struct fgprof_summary *summary = &since->summary;
    assert_true(time_in_pause(since) > 0);
    assert_true(time_in_pause(so_far) + time_in_pause(since) <= time_in_pause(last));
    assert_true(so_far->summary.elapsed_ns + summary->elapsed_ns < last->summary.elapsed_ns);
    assert_true(so_far->summary.ticks_taken + summary->ticks_taken <= last->summary.ticks_taken);
    assert_true(summary->ticks_taken > 0 && summary->ticks_taken <= summary->ticks_planned);
    assert_int_equal(summary->ticks_late, summary->ticks_planned - summary->ticks_taken);
    assert_true(so_far->summary.samples + summary->samples <= last->summary.samples);
    assert_int_equal(summary->threads_seen, 1);
    assert_true(since->start_time_ns > so_far->start_time_ns);
    uint64_t elapsed_ns = 0;
    for (size_t i = 0; i < since->sample_count; i++)
        elapsed_ns += since->samples[i].elapsed_ns;
    assert_int_equal(elapsed_ns, summary->elapsed_ns);
}

static void test_what_came_after_a_checkpoint(void **state)
{
    struct world *world = *state;
    fgprof_profile *last, *again;
    assert_int_equal(fgprof_recorder_run(world->recorder, &last), 0);
    assert_int_equal(world->error, 0);
    assert_non_null(world->second);
    check_since(world->first, world->second, last);
    /* The process may have ended before the request was served. */
    assert_int_equal(fgprof_recorder_profile_since(world->recorder, world->checkpoint, &again), 0);
    check_since(world->first, again, last);
    assert_true(time_in_pause(again) >= time_in_pause(world->second));
    fgprof_profile_free(again);
    fgprof_profile_free(last);
}

/* The parts add up to the whole recording, to the nanosecond. */
static void test_consecutive_parts(void **state)
{
    struct world *world = *state;
    fgprof_profile *last, *third;
    assert_int_equal(fgprof_recorder_run(world->recorder, &last), 0);
    assert_int_equal(world->error, 0);
    assert_int_equal(fgprof_recorder_profile_next(world->recorder, &world->checkpoint, &third), 0);
    const fgprof_profile *const parts[] = {world->first, world->second, third};
    uint64_t elapsed_ns = 0, in_pause_ns = 0, ticks = 0, samples = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(parts[i]->start_time_ns, last->start_time_ns + elapsed_ns);
        elapsed_ns += parts[i]->summary.elapsed_ns;
        in_pause_ns += time_in_pause(parts[i]);
        ticks += parts[i]->summary.ticks_taken;
        samples += parts[i]->summary.samples;
    }
    assert_true(time_in_pause(world->first) > 0 && world->second->summary.elapsed_ns > 0);
    assert_int_equal(elapsed_ns, last->summary.elapsed_ns);
    assert_int_equal(in_pause_ns, time_in_pause(last));
    assert_int_equal(ticks, last->summary.ticks_taken);
    assert_int_equal(samples, last->summary.samples);
    fgprof_profile_free(third);
    fgprof_profile_free(last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_profiles_while_sampling_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_threads_that_have_not_moved_yet, set_up_without_idle,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_since_a_moment_without_idle,
                                        set_up_moment_without_idle, tear_down),
        cmocka_unit_test_setup_teardown(test_threads_that_never_moved_are_marked, set_up_by_id,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_there_is_none_before_the_start, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_came_after_a_checkpoint, set_up_since, tear_down),
        cmocka_unit_test_setup_teardown(test_consecutive_parts, set_up_next, tear_down),
        cmocka_unit_test_setup_teardown(test_a_profile_at_the_very_end, set_up_at_the_end,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("profile_so_far", tests, NULL, NULL);
}
