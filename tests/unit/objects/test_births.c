/* Births of the threads that a child creates. Skipped if the kernel does not report them. */
#include "unit.h"
#include "offline_cpu.h"
#include "objects/births.h"
#include "observe/events.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

struct world {
    struct births *births;
    pid_t pid;
    int orders, answers; /* pipes: the child creates a thread for each byte, and answers */
    int cpu;             /* to which it is pinned */
};

static void *end_at_once(void *context)
{
    return context;
}

static void make_threads(int orders, int answers)
{
    pthread_t thread;
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(100);
    while (read(orders, &byte, 1) == 1) {
        if (pthread_create(&thread, NULL, end_at_once, NULL) || pthread_join(thread, NULL) ||
            write(answers, &byte, 1) != 1)
            break;
    }
    _exit(0);
}

/* The last CPU on which we may run. */
static int last_cpu(void)
{
    cpu_set_t all;
    int last = -1;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        last = CPU_ISSET(cpu, &all) ? cpu : last;
    return last;
}

static int set_up(void **state)
{
    static struct world world;
    int orders[2], answers[2], stack_refusal;
    cpu_set_t set;
    world = (struct world){.cpu = last_cpu()};
    int err = births_new(false, &world.births, &stack_refusal);
    if (err) {
        /* -ENOSYS: a kernel without perf events */
        assert_true(err == -EACCES || err == -EPERM || err == -ENOSYS || err == -ENOENT);
        *state = NULL;
        return 0;
    }
    assert_int_equal(pipe(orders), 0);
    assert_int_equal(pipe(answers), 0);
    world.pid = fork();
    if (world.pid == 0) {
        close(orders[1]);
        make_threads(orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    world.orders = orders[1];
    world.answers = answers[0];
    CPU_ZERO(&set);
    CPU_SET(world.cpu, &set);
    assert_int_equal(sched_setaffinity(world.pid, sizeof set, &set), 0);
    assert_int_equal(births_follow(world.births, world.pid), 0);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    if (!world)
        return 0;
    kill(world->pid, SIGKILL);
    waitpid(world->pid, NULL, 0);
    close(world->orders);
    close(world->answers);
    births_free(world->births);
    return 0;
}

static void make_thread(const struct world *world)
{
    char byte = 0;
    assert_int_equal(write(world->orders, &byte, 1), 1);
    assert_int_equal(read(world->answers, &byte, 1), 1);
}

struct counts {
    unsigned made, ended;
};

static void take_all(const struct world *world, struct counts *counts)
{
    const struct timespec kept_back = {.tv_nsec = 5000000};
    const struct birth *birth;
    nanosleep(&kept_back, NULL);
    assert_int_equal(births_read(world->births), 0);
    while ((birth = births_next(world->births))) {
        assert_int_equal(birth->process_id, world->pid);
        /* The child's own birth may also be reported. */
        bool is_other = birth->tid != world->pid;
        counts->made += is_other && birth->change == BIRTH_MADE;
        counts->ended += is_other && birth->change == BIRTH_ENDED;
        if (is_other && birth->change == BIRTH_MADE)
            assert_int_equal(birth->maker_tid, world->pid);
        births_skip(world->births);
    }
}

/* A birth's stack may come with the next births_read. */
static struct counts count_births(const struct world *world)
{
    struct counts counts = {0};
    take_all(world, &counts);
    take_all(world, &counts);
    return counts;
}

static void test_births_and_ends(void **state)
{
    const struct world *world = *state;
    if (!world)
        skip();
    for (unsigned i = 1; i <= 3; i++) {
        for (unsigned j = 0; j < i; j++)
            make_thread(world);
        const struct counts counts = count_births(world);
        assert_int_equal(counts.made, i);
        assert_int_equal(counts.ended, i);
    }
}

static void test_a_cpu_that_has_ended_is_read_and_comes_back(void **state)
{
    const struct world *world = *state;
    if (!world)
        skip();
    make_thread(world);
    offline_cpu = world->cpu;
    assert_int_equal(count_births(world).made, 1);
    make_thread(world);
    assert_int_equal(count_births(world).made, 0);
    offline_cpu = -1;
    assert_int_equal(count_births(world).made, 0);
    make_thread(world);
    assert_int_equal(count_births(world).made, 1);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_births_and_ends),
        IN_WORLD(test_a_cpu_that_has_ended_is_read_and_comes_back),
    };
    return cmocka_run_group_tests_name("births", tests, NULL, NULL);
}
