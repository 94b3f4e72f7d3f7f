/* Whether a thread of a process has run unseen. The process is a child that computes on request. */
#include "unit.h"
#include "base/clock.h"
#include "sampler/activity_check.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define COMPUTE_NS 5000000u /* more than a scheduler's tick */

struct world {
    int orders[2], answers[2];
    struct sampled_process process;
    struct thread thread;
};

static void obey(struct world *world)
{
    char order;
    while (read(world->orders[0], &order, 1) == 1) {
        uint64_t until_ns = thread_cpu_ns() + COMPUTE_NS;
        while (thread_cpu_ns() < until_ns) {
        }
        if (write(world->answers[1], &order, 1) != 1)
            break;
    }
    _exit(0);
}

/* Waits until the child sleeps, so that all of its CPU time is in the sum. A thread is in state S
 * some time before it leaves its CPU, and "running" (proc(5)) as long as it has not left it. */
static void await_sleep(const struct world *world)
{
    char line[256];
    do
        assert_true(procfs_read(world->process.process.proc_fd, "syscall", line, sizeof line) > 0);
    while (strncmp(line, "running", 7) == 0);
}

static void let_compute(struct world *world)
{
    char byte = 0;
    assert_int_equal(write(world->orders[1], &byte, 1), 1);
    assert_int_equal(read(world->answers[0], &byte, 1), 1);
    await_sleep(world);
}

static void end_round(struct world *world, uint64_t tick)
{
    world->process.activity_check.reading = (struct throttle){0};
    activity_check_read(&world->process);
    activity_check_judge(&world->process, tick, true);
}

static struct reading look(const struct world *world)
{
    char line[128];
    struct reading reading = {.at_ns = monotonic_ns()};
    assert_true(procfs_read(world->process.process.proc_fd, "schedstat", line, sizeof line) > 0);
    reading.has_activity = activity_parse(line, &reading.activity);
    return reading;
}

static void note_look(struct world *world, uint64_t tick)
{
    const struct reading now = look(world);
    uint64_t last_look_tick = world->thread.schedule.looked_tick;
    world->thread.schedule.looked_tick = tick;
    activity_check_note_look(&world->process, &world->thread, &now, last_look_tick);
}

/* The first sweep begins with the first round and has ended at tick 2. */
static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    assert_non_null(world);
    assert_int_equal(pipe(world->orders), 0);
    assert_int_equal(pipe(world->answers), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        close(world->orders[1]);
        obey(world);
    }
    assert_int_equal(process_open(pid, &world->process.process), 0);
    world->process.threads.count = 1;
    let_compute(world);
    end_round(world, 1);
    assert_true(world->process.activity_check.is_sweeping);
    note_look(world, 2);
    end_round(world, 2);
    assert_false(world->process.activity_check.is_sweeping ||
                 world->process.activity_check.has_run_unseen);
    end_round(world, 3);
    assert_int_equal(world->process.activity_check.rest.tick, 3);
    world->process.activity_check.sweep_began_ns = 0; /* long ago */
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    int status;
    close(world->orders[1]);
    assert_int_equal(waitpid(world->process.process.pid, &status, 0), world->process.process.pid);
    close(world->orders[0]);
    close(world->answers[0]);
    close(world->answers[1]);
    process_close(&world->process.process);
    free(world);
    return 0;
}

static void test_in_a_process_at_rest_none_has_run(void **state)
{
    struct world *world = *state;
    for (uint64_t tick = 4; tick < 20; tick++) {
        end_round(world, tick);
        assert_false(world->process.activity_check.has_run_unseen);
        assert_false(activity_check_wants_look(&world->process, &world->thread));
    }
}

static void test_what_ran_unseen_begins_a_sweep(void **state)
{
    struct world *world = *state;
    let_compute(world);
    end_round(world, 4);
    assert_true(world->process.activity_check.has_run_unseen &&
                world->process.activity_check.is_sweeping);
    assert_true(activity_check_wants_look(&world->process, &world->thread));
    note_look(world, 5);
    assert_false(activity_check_wants_look(&world->process, &world->thread));
}

static void test_what_looks_account_for_does_not(void **state)
{
    struct world *world = *state;
    for (uint64_t tick = 4; tick < 8; tick++) {
        let_compute(world);
        note_look(world, tick);
        end_round(world, tick);
        assert_false(world->process.activity_check.has_run_unseen);
    }
}

static void test_a_sweep_ends_when_all_are_listed_and_looked_at(void **state)
{
    struct world *world = *state;
    struct activity_check *check = &world->process.activity_check;
    let_compute(world);
    end_round(world, 4);
    world->process.listing.is_wanted = true; /* a thread was missing: another may have come */
    activity_check_judge(&world->process, 5, true);
    assert_true(check->is_sweeping);
    world->process.listing.is_wanted = false;
    activity_check_judge(&world->process, 6, false);
    assert_true(check->is_sweeping); /* there was no time for some threads */
    activity_check_judge(&world->process, 7, true);
    assert_false(check->is_sweeping || check->has_run_unseen);
    /* CPU time that was used by threads that are gone is now settled too. */
    end_round(world, 8);
    assert_false(check->has_run_unseen);
}

static void test_a_sweep_leaves_out_what_the_last_one_saw(void **state)
{
    struct world *world = *state;
    struct activity_check *check = &world->process.activity_check;
    let_compute(world);
    end_round(world, 4);
    assert_int_equal(check->sweep_tick, 4);
    end_round(world, 5); /* no look was noted: the thread has run since the sweep ended */
    let_compute(world);
    check->sweep_began_ns = 0;
    end_round(world, 8);
    assert_true(check->is_sweeping);
    assert_int_equal(check->sweep_tick, 4);
    end_round(world, 9);
    end_round(world, 10);
    assert_int_equal(check->rest.tick, 10);
    let_compute(world);
    check->sweep_began_ns = 0;
    end_round(world, 11);
    assert_int_equal(check->rest.tick, 10);
    assert_int_equal(check->sweep_tick, 11); /* it had rested */
}

static void test_sweeps_of_many_threads_are_seldom(void **state)
{
    struct world *world = *state;
    struct activity_check *check = &world->process.activity_check;
    world->process.threads.count = 1000000;
    check->sweep_began_ns = monotonic_ns() - 1000000000u;
    let_compute(world);
    end_round(world, 4);
    assert_true(check->has_run_unseen && !check->is_sweeping);
    check->sweep_began_ns = 0;
    end_round(world, 5);
    assert_true(check->is_sweeping);
}

static void test_without_the_sum_any_may_have_run(void **state)
{
    struct world *world = *state;
    world->process.process.cpu_clock = INT_MAX; /* not a clock */
    end_round(world, 4);
    assert_true(world->process.activity_check.has_run_unseen);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_in_a_process_at_rest_none_has_run),
        TEST(test_what_ran_unseen_begins_a_sweep),
        TEST(test_what_looks_account_for_does_not),
        TEST(test_a_sweep_ends_when_all_are_listed_and_looked_at),
        TEST(test_a_sweep_leaves_out_what_the_last_one_saw),
        TEST(test_sweeps_of_many_threads_are_seldom),
        TEST(test_without_the_sum_any_may_have_run),
    };
    return cmocka_run_group_tests_name("activity_check", tests, NULL, NULL);
}
