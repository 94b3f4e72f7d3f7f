/* When threads are listed, and from when they count. The process is a child whose threads sleep. */
#include "unit.h"
#include "base/clock.h"
#include "sampler/listing.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

enum { THREADS = 40 }; /* including the first one */
#define PERIOD_NS 10000000u

struct world {
    struct sampler_options options;
    struct sampler sampler;
    struct sampled_process process;
    int ready[2];
};

static void *sleep_on(void *argument)
{
    (void)argument;
    for (;;)
        pause();
    return NULL;
}

static void be_sampled(int ready_fd)
{
    pthread_t thread;
    for (unsigned i = 1; i < THREADS; i++) {
        if (pthread_create(&thread, NULL, sleep_on, NULL))
            _exit(1);
    }
    if (write(ready_fd, "", 1) == 1)
        sleep_on(NULL);
    _exit(1);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    char byte;
    *state = world;
    assert_non_null(world);
    assert_int_equal(pipe(world->ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        be_sampled(world->ready[1]);
    assert_int_equal(read(world->ready[0], &byte, 1), 1);
    world->options.period_ns = PERIOD_NS;
    world->sampler.options = &world->options;
    world->sampler.clock.ticks.period_ns = PERIOD_NS;
    /* The sixth tick is due soon. */
    world->sampler.clock.ticks.start_ns = monotonic_ns() - 5 * PERIOD_NS;
    world->sampler.watches.keep_fds_below = 1000;
    assert_int_equal(channel_new(&world->sampler.channel), 0);
    assert_int_equal(process_open(pid, &world->process.process), 0);
    assert_int_equal(listing_update_whole(&world->sampler, &world->process), 0);
    assert_int_equal(world->process.threads.count, THREADS);
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    int status;
    kill(world->process.process.pid, SIGKILL);
    assert_int_equal(waitpid(world->process.process.pid, &status, 0), world->process.process.pid);
    close(world->ready[0]);
    close(world->ready[1]);
    threads_free(&world->process.threads);
    thread_list_free(&world->process.listing.list);
    process_close(&world->process.process);
    watches_free(&world->sampler.watches);
    numbers_free(&world->sampler.numbers);
    thread_choice_free(&world->options.choice);
    channel_free(world->sampler.channel);
    free(world);
    return 0;
}

static size_t begun(const struct world *world)
{
    size_t count = 0;
    for (size_t i = 0; i < THREADS; i++) {
        const struct thread *thread = &world->process.threads.items[i];
        bool has_begun = thread->phase != PHASE_LISTED;
        assert_int_equal(thread->life.begin.at_ns, world->sampler.clock.ticks.start_ns);
        assert_int_equal(thread->life.begin.has_activity, has_begun);
        count += has_begun;
    }
    return count;
}

static void test_begins_are_read_in_parts(void **state)
{
    struct world *world = *state;
    assert_int_equal(begun(world), 0);
    listing_read_begins(&world->sampler, &world->process, 0);
    size_t first = begun(world);
    assert_in_range(first, 1, THREADS - 1);
    assert_true(world->process.listing.lacks_begins);
    listing_read_begins(&world->sampler, &world->process, 0);
    assert_true(begun(world) > first);
    listing_read_begins(&world->sampler, &world->process, UINT64_MAX);
    assert_int_equal(begun(world), THREADS);
    assert_false(world->process.listing.lacks_begins);
}

static void test_what_passed_before_is_assumed(void **state)
{
    struct world *world = *state;
    listing_read_begins(&world->sampler, &world->process, UINT64_MAX);
    assert_true(world->sampler.counts.samples_assumed >= THREADS * 5);
    for (size_t i = 0; i < THREADS; i++)
        assert_true(world->process.threads.items[i].schedule.asleep_since_tick >= 5);
}

static void test_a_command_begins_with_the_recording(void **state)
{
    struct world *world = *state;
    world->sampler.command.pid = world->process.process.pid;
    listing_read_begins(&world->sampler, &world->process, UINT64_MAX);
    assert_int_equal(world->sampler.counts.samples_assumed, 0);
    assert_int_equal(begun(world), THREADS);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(world->process.threads.items[i].life.begin.activity.running_ns, 0);
}

static bool is_listed(struct world *world)
{
    uint64_t began_ns = world->process.listing.began_ns;
    assert_int_equal(listing_update(&world->sampler, &world->process), 0);
    return world->process.listing.began_ns != began_ns;
}

/* Moves the last listing, and the last one that found a change, into the past. */
static void let_time_pass(struct world *world)
{
    struct listing *listing = &world->process.listing;
    listing->changed_ns = 0;
    listing->listed = (struct throttle){0};
}

static void test_the_same_number_is_listed_only_after_a_change(void **state)
{
    struct world *world = *state;
    let_time_pass(world);
    assert_false(is_listed(world));
    world->process.activity_check.has_run_unseen =
        true; /* then a thread that has gone is looked at soon, */
    assert_false(is_listed(world));
    world->process.listing.is_wanted = true; /* and found missing */
    assert_true(is_listed(world));
    let_time_pass(world);
    world->process.listing.changed_ns = monotonic_ns();
    assert_true(is_listed(world));
    let_time_pass(world);
    world->process.threads.count--;
    assert_true(is_listed(world));
    assert_int_equal(world->process.threads.count, THREADS);
}

static void test_threads_that_are_not_looked_at_are_listed(void **state)
{
    struct world *world = *state;
    assert_int_equal(thread_choice_set_name(&world->options.choice, "none"), 0);
    let_time_pass(world);
    assert_false(is_listed(world));
    world->process.activity_check.has_run_unseen = true;
    assert_true(is_listed(world));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_begins_are_read_in_parts),
        TEST(test_what_passed_before_is_assumed),
        TEST(test_a_command_begins_with_the_recording),
        TEST(test_the_same_number_is_listed_only_after_a_change),
        TEST(test_threads_that_are_not_looked_at_are_listed),
    };
    return cmocka_run_group_tests_name("listing", tests, NULL, NULL);
}
