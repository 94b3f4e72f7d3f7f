/* Elapsed time, checked with simulated programs whose every step is known. */
#include "unit.h"
#include "base/random.h"
#include "count/elapsed.h"

#include <math.h>

#define PERIOD_NS 10000000u
#define STEP_NS 100000u
#define STEPS (PERIOD_NS / STEP_NS) /* per period */
#define THREADS_MAX 8

enum does { SLEEPS, RUNS, WAITS };

/* A process whose threads do in each step what `does` says, and the estimator's results for it. */
struct world {
    struct elapsed process;
    struct stack_table table;
    struct parallelism parallelism;
    unsigned count;
    struct elapsed_thread threads[THREADS_MAX];
    uint64_t ran_ns[THREADS_MAX], waited_ns[THREADS_MAX]; /* not booked yet */
    double part_ns[THREADS_MAX], runnable_ns[THREADS_MAX];
    double true_ns[THREADS_MAX], true_runnable_ns[THREADS_MAX], true_awake_ns;
    uint64_t all_ran_ns[THREADS_MAX];
    uint64_t tick, step;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    assert_non_null(world);
    elapsed_begin(&world->process, 1000, PERIOD_NS, 2);
    uint32_t process;
    assert_int_equal(stack_table_add_process(&world->table, 7, 0, &process), 0);
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    elapsed_free(&world->process);
    stack_table_free(&world->table);
    free(world);
    return 0;
}

static void book(struct world *world, unsigned thread)
{
    uint64_t running_ns, runnable_ns;
    elapsed_book(&world->process, &world->threads[thread], world->ran_ns[thread],
                 world->waited_ns[thread], &running_ns, &runnable_ns);
    world->part_ns[thread] += (double)(running_ns + runnable_ns);
    world->runnable_ns[thread] += (double)runnable_ns;
    world->ran_ns[thread] = world->waited_ns[thread] = 0;
}

/* A tick observes the threads in this step. */
static void take_tick(struct world *world, const enum does does[THREADS_MAX])
{
    struct elapsed_instant instant = {0};
    world->tick++;
    for (unsigned i = 0; i < world->count; i++) {
        if (does[i] != SLEEPS)
            elapsed_add_awake(&instant, &world->threads[i]);
    }
    for (unsigned i = 0; i < world->count; i++) {
        if (does[i] != SLEEPS)
            elapsed_share(&world->process, &instant, 1, &world->threads[i]);
    }
    if (instant.threads)
        parallelism_add(&world->parallelism, &world->process, &instant, 1);
    assert_int_equal(elapsed_pass(&world->process, &world->table, world->tick, 0, 1, &instant), 0);
    for (unsigned i = 0; i < world->count; i++)
        book(world, i);
}

static void note_truth(struct world *world, const enum does does[THREADS_MAX])
{
    unsigned running = 0, waiting = 0;
    for (unsigned i = 0; i < world->count; i++) {
        running += does[i] == RUNS;
        waiting += does[i] == WAITS;
    }
    for (unsigned i = 0; i < world->count; i++) {
        if (does[i] == RUNS)
            world->true_ns[i] += STEP_NS / (double)running;
        if (does[i] == WAITS && !running)
            world->true_runnable_ns[i] += STEP_NS / (double)waiting;
    }
    world->true_awake_ns += running || waiting ? STEP_NS : 0;
}

/* Simulates one step. Each period has one tick, in a random step. */
static void step(struct world *world, const enum does does[THREADS_MAX])
{
    uint64_t period = world->step / STEPS;
    for (unsigned i = 0; i < world->count; i++) {
        world->ran_ns[i] += does[i] == RUNS ? STEP_NS : 0;
        world->all_ran_ns[i] += does[i] == RUNS ? STEP_NS : 0;
        world->waited_ns[i] += does[i] == WAITS ? STEP_NS : 0;
    }
    note_truth(world, does);
    if (world->step % STEPS == random_below(STEPS, 99, period))
        take_tick(world, does);
    world->step++;
}

static double sum(const double values[THREADS_MAX])
{
    double all = 0;
    for (unsigned i = 0; i < THREADS_MAX; i++)
        all += values[i];
    return all;
}

static void assert_near(double value, double wanted, double part)
{
    if (fabs(value - wanted) > part * wanted)
        fail_msg("%g is not %g", value, wanted);
}

/* The only thread gets all of its time, however short its bursts are: no tick is needed to divide
 * it. */
static void test_one_thread_has_all_of_its_time(void **state)
{
    struct world *world = *state;
    world->count = 1;
    for (uint64_t i = 0; i < 1000 * STEPS; i++) {
        const enum does does[THREADS_MAX] = {i % 7 == 3 ? RUNS : i % 7 == 2 ? WAITS : SLEEPS};
        step(world, does);
    }
    book(world, 0);
    assert_near(world->part_ns[0], world->true_ns[0] + world->true_runnable_ns[0], 1e-9);
    assert_near(world->runnable_ns[0], world->true_runnable_ns[0], 1e-9);
}

/* One thread runs for 3 s, then 8 threads for 1 s, which take turns on two CPUs. */
static void test_one_thread_and_then_eight(void **state)
{
    struct world *world = *state;
    world->count = 8;
    for (uint64_t i = 0; i < 300 * STEPS; i++) {
        const enum does does[THREADS_MAX] = {RUNS};
        step(world, does);
    }
    double first_ns = world->part_ns[0] + (double)world->ran_ns[0];
    for (uint64_t i = 0; i < 100 * STEPS; i++) {
        enum does does[THREADS_MAX];
        for (unsigned j = 0; j < 8; j++) /* each gets a CPU for 3 ms */
            does[j] = j / 2 == i / 30 % 4 ? RUNS : WAITS;
        step(world, does);
    }
    for (unsigned i = 0; i < 8; i++)
        book(world, i);
    assert_near(first_ns, 3e9, 1e-9);
    assert_near(sum(world->part_ns) - first_ns, 1e9, 0.01);
    for (unsigned i = 1; i < 8; i++)
        assert_near(world->part_ns[i], 1e9 / 8, 0.05);
    assert_true(sum(world->runnable_ns) < 0.01 * 1e9);
}

/* As with one lock that all threads need: never two run at once, though each is awake in most
 * periods. */
static void test_threads_that_take_turns_lose_nothing(void **state)
{
    struct world *world = *state;
    world->count = 8;
    for (uint64_t i = 0, draw = 0; i < 2000 * STEPS; i++) {
        enum does does[THREADS_MAX] = {SLEEPS};
        draw = i % 3 ? draw : random_below(8, 5, i); /* 0.3 ms each */
        does[draw] = RUNS;
        step(world, does);
    }
    for (unsigned i = 0; i < 8; i++) {
        book(world, i);
        assert_near(world->part_ns[i], (double)world->all_ran_ns[i], 1e-9);
    }
}

/* Independent bursts and pauses of random lengths, too short for ticks to resolve: the estimate is
 * within three standard deviations for so many ticks, and no thread is favoured. */
static void test_bursts_at_random(void **state)
{
    static const unsigned burst_steps[] = {5, 20, 40, 300}, pause_steps[] = {15, 20, 120, 300};
    struct world *world = *state;
    enum does does[THREADS_MAX] = {SLEEPS};
    uint64_t draw = 0;
    world->count = 4;
    for (uint64_t i = 0; i < 20000 * STEPS; i++) {
        for (unsigned j = 0; j < 4; j++) {
            unsigned length = does[j] == RUNS ? burst_steps[j] : pause_steps[j];
            if (!random_below(length, 11, draw++))
                does[j] = does[j] == RUNS ? SLEEPS : RUNS;
        }
        step(world, does);
    }
    for (unsigned i = 0; i < 4; i++) {
        book(world, i);
        assert_near(world->part_ns[i], world->true_ns[i], 0.02);
    }
    assert_near(sum(world->part_ns), world->true_awake_ns, 0.01);
}

/* Another program has the CPU for three quarters of the time, and this one's threads wait for it.
 */
static void test_a_wait_for_a_cpu_counts_if_nobody_runs(void **state)
{
    struct world *world = *state;
    world->count = 2;
    world->process.cpus = 1;
    for (uint64_t i = 0; i < 2000 * STEPS; i++) {
        /* Threads 0 and 1 both want the CPU, and each gets an eighth of its time. */
        uint64_t turn = i / 20 % 8;
        enum does does[THREADS_MAX] = {turn == 0 ? RUNS : WAITS, turn == 4 ? RUNS : WAITS};
        step(world, does);
    }
    for (unsigned i = 0; i < 2; i++) {
        book(world, i);
        assert_near(world->runnable_ns[i], world->true_runnable_ns[i], 0.02);
        assert_near(world->part_ns[i] - world->runnable_ns[i], world->true_ns[i], 0.05);
    }
    assert_near(sum(world->part_ns), world->true_awake_ns, 0.01);
}

/* Other programs take each of two CPUs for a third of the time, at random; three threads want them.
 */
static void test_cpus_that_others_use_too(void **state)
{
    struct world *world = *state;
    unsigned turn = 0;
    bool is_ours[2] = {true, true};
    world->count = 3;
    for (uint64_t i = 0, draw = 0; i < 4000 * STEPS; i++) {
        enum does does[THREADS_MAX] = {WAITS, WAITS, WAITS};
        for (unsigned cpu = 0; cpu < 2; cpu++) {
            if (!random_below(is_ours[cpu] ? 40 : 20, 13, draw++))
                is_ours[cpu] = !is_ours[cpu];
        }
        turn += i % 30 == 0;
        for (unsigned cpu = 0; cpu < 2; cpu++) {
            if (is_ours[cpu])
                does[(turn + cpu) % 3] = RUNS;
        }
        step(world, does);
    }
    for (unsigned i = 0; i < 3; i++)
        book(world, i);
    assert_near(sum(world->part_ns), world->true_awake_ns, 0.01);
    assert_near(sum(world->part_ns) - sum(world->runnable_ns), sum(world->true_ns), 0.02);
    assert_near(sum(world->runnable_ns), sum(world->true_runnable_ns), 0.1);
}

/* A thread whose bursts are so rare that no tick observes it: it is assumed to share the time with
 * three others, as the process's other threads do. */
static void test_a_thread_that_no_tick_found(void **state)
{
    struct world *world = *state;
    const struct elapsed_instant four = {.threads = 4, .running = 4};
    uint64_t running_ns, runnable_ns;
    elapsed_book(&world->process, &world->threads[0], 3000, 1000, &running_ns, &runnable_ns);
    assert_int_equal(running_ns + runnable_ns, 0);
    assert_int_equal(elapsed_pass(&world->process, &world->table, 1, 0, 1, &four), 0);
    elapsed_book_rest(&world->process, &world->threads[0], &running_ns, &runnable_ns);
    assert_int_equal(running_ns, 1000);
    assert_int_equal(runnable_ns, 0);
    elapsed_book_rest(&world->process, &world->threads[0], &running_ns, &runnable_ns);
    assert_int_equal(running_ns + runnable_ns, 0);
    /* Nothing is known of other threads. */
    world->process.awake_ticks = world->process.awake_instances = 0;
    elapsed_book(&world->process, &world->threads[1], 3000, 0, &running_ns, &runnable_ns);
    elapsed_book_rest(&world->process, &world->threads[1], &running_ns, &runnable_ns);
    assert_int_equal(running_ns, 3000);
}

static uint32_t add_sample(struct world *world, uint32_t name)
{
    const struct stack stack = {.cut = STACK_WHOLE};
    const struct sample_labels labels = {.thread_name = name};
    uint32_t sample;
    assert_int_equal(stack_table_add(&world->table, 0, &stack, &labels, 0, 0, &sample), 0);
    return sample;
}

static uint64_t add_wait(struct world *world, uint32_t sample, uint64_t first, uint64_t last,
                         bool is_blocked)
{
    const struct elapsed_wait wait = {0, sample, first, last, is_blocked};
    uint64_t number;
    assert_int_equal(elapsed_add_wait(&world->process, &wait, &number), 0);
    return number;
}

static void pass(struct world *world, uint64_t idle_ticks)
{
    static const struct elapsed_instant nobody = {0};
    world->tick += idle_ticks;
    assert_int_equal(
        elapsed_pass(&world->process, &world->table, world->tick, idle_ticks, 0, &nobody), 0);
}

static void assert_waited(const struct world *world, uint32_t sample, double ticks)
{
    assert_near(world->table.samples[sample].waited_ticks, ticks, 1e-9);
}

/* Over ten ticks, disk waits have priority over short waits, and those over idle time. */
static void test_waits_by_their_rank(void **state)
{
    struct world *world = *state;
    uint32_t disk = add_sample(world, 1), one = add_sample(world, 2), other = add_sample(world, 3);
    add_wait(world, one, 1, 6, false);
    add_wait(world, other, 3, 4, false);
    add_wait(world, disk, 6, 7, true);
    pass(world, 10);
    elapsed_end(&world->process, &world->table, 1000 + 10 * PERIOD_NS);
    assert_waited(world, one, 2 + 0.5 + 0.5 + 1);
    assert_waited(world, other, 1);
    assert_waited(world, disk, 2);
    assert_int_equal(world->process.idle_ticks, 3);
    uint64_t sample_ns[3], idle_ns[1];
    assert_int_equal(elapsed_divide(&world->table, &world->process, 0, sample_ns, idle_ns), 0);
    assert_int_equal(sample_ns[disk], 2 * PERIOD_NS);
    assert_int_equal(sample_ns[one], 4 * PERIOD_NS);
    assert_int_equal(sample_ns[other], 1 * PERIOD_NS);
    assert_int_equal(idle_ns[0], 3 * PERIOD_NS);
}

/* A tick that found a thread awake is not attributed to a wait. */
static void test_a_wait_while_others_are_awake(void **state)
{
    struct world *world = *state;
    const struct elapsed_instant one = {.threads = 1, .running = 1};
    uint32_t sample = add_sample(world, 1);
    add_wait(world, sample, 1, 20, true);
    pass(world, 5);
    world->tick += 10;
    assert_int_equal(elapsed_pass(&world->process, &world->table, world->tick, 2, 8, &one), 0);
    elapsed_end(&world->process, &world->table, 0);
    assert_waited(world, sample, 7);
}

/* Hours in a disk wait that is reported once: it is known to go on. */
static void test_a_wait_that_goes_on(void **state)
{
    struct world *world = *state;
    uint32_t sample = add_sample(world, 1);
    uint64_t number = add_wait(world, sample, 3, ELAPSED_OPEN, true);
    pass(world, 1000000);
    assert_true(world->table.samples[sample].waited_ticks > 999800);
    elapsed_end_wait(&world->process, number, 1000000);
    pass(world, 500);
    elapsed_end(&world->process, &world->table, 0);
    assert_waited(world, sample, 999998);
    assert_int_equal(world->process.idle_ticks, 502);
}

/* A wait's sample is known only after its end, and after other waits have ended. */
static void test_a_wait_is_placed_later(void **state)
{
    struct world *world = *state;
    uint32_t before = add_sample(world, 1), after = add_sample(world, 2);
    uint64_t gone = add_wait(world, before, 1, 2, false);
    pass(world, 300);
    add_wait(world, before, 301, 301, false);
    uint64_t placed = add_wait(world, before, 302, 303, false);
    uint64_t last = add_wait(world, before, 304, 304, false);
    assert_true(gone < placed && placed < last);
    pass(world, 10);
    elapsed_place_wait(&world->process, gone, after);
    elapsed_place_wait(&world->process, placed, after);
    elapsed_place_wait(&world->process, last + 1, after);
    elapsed_end(&world->process, &world->table, 0);
    assert_waited(world, before, 2 + 1 + 1);
    assert_waited(world, after, 2);
}

/* A short wait is reported after its end, about a second after its first tick, and still counts. */
static void test_ticks_wait_for_short_waits(void **state)
{
    struct world *world = *state;
    uint32_t sample = add_sample(world, 1);
    pass(world, 300);
    uint64_t first = world->tick + 1;
    pass(world, 110);
    assert_true(elapsed_is_short(&world->process, first, first + 100));
    assert_false(elapsed_is_short(&world->process, first, first + 101));
    add_wait(world, sample, first, first + 100, false);
    pass(world, 1000);
    assert_waited(world, sample, 101);
    assert_int_equal(world->process.wait_count, 0); /* forgotten */
}

/* Ticks divide the time that the accounts leave, exact to the nanosecond. */
static void test_all_time_is_given(void **state)
{
    struct world *world = *state;
    uint64_t sample_ns[3], idle_ns[1], all_ns = 1000000007;
    uint32_t awake = add_sample(world, 1), waits = add_sample(world, 2);
    uint32_t both = add_sample(world, 3);
    world->table.samples[awake].part_ns = 100000000;
    world->table.samples[both] = (struct counted_sample){
        .labels = world->table.samples[both].labels, .part_ns = 50000000, .waited_ticks = 10};
    world->table.samples[waits].waited_ticks = 20;
    world->process.idle_ticks = 60;
    assert_int_equal(
        elapsed_divide(&world->table, &world->process, 1000 + all_ns, sample_ns, idle_ns), 0);
    assert_int_equal(sample_ns[awake], 100000000);
    assert_near((double)sample_ns[waits], 850000007 / 90.0 * 20, 1e-7);
    assert_near((double)sample_ns[both], 50000000 + 850000007 / 90.0 * 10, 1e-7);
    assert_int_equal(sample_ns[0] + sample_ns[1] + sample_ns[2] + idle_ns[0], all_ns);
    /* More time awake than elapsed: it is scaled down, and nothing is left for waits. */
    world->table.samples[awake].part_ns = 2 * all_ns;
    assert_int_equal(
        elapsed_divide(&world->table, &world->process, 1000 + all_ns, sample_ns, idle_ns), 0);
    assert_int_equal(sample_ns[awake] + sample_ns[both], all_ns);
    assert_true(sample_ns[awake] > 40 * sample_ns[both] * 39 / 40);
    assert_int_equal(sample_ns[waits] + idle_ns[0], 0);
}

static void test_time_of_a_process_without_samples(void **state)
{
    struct world *world = *state;
    uint64_t sample_ns[1], idle_ns[1];
    assert_int_equal(elapsed_divide(&world->table, &world->process, 1500, sample_ns, idle_ns), 0);
    assert_int_equal(idle_ns[0], 500);
    world->process.end_ns = 1200;
    assert_int_equal(elapsed_divide(&world->table, &world->process, 1500, sample_ns, idle_ns), 0);
    assert_int_equal(idle_ns[0], 200);
}

static struct elapsed_instant instant_of(size_t threads, double running)
{
    return (struct elapsed_instant){.threads = threads, .running = running};
}

static void test_parallelism(void **state)
{
    struct parallelism parallelism = {0};
    struct elapsed process;
    uint64_t rows[PARALLELISM_MAX + 1], all_ns = 0;
    const struct elapsed_instant one = instant_of(1, 1), half = instant_of(1, 0.5);
    const struct elapsed_instant four = instant_of(4, 1.5), many = instant_of(1000, 1000);
    (void)state;
    elapsed_begin(&process, 0, 1, 3);
    parallelism_add(&parallelism, &process, &one, 3);
    parallelism_add(&parallelism, &process, &half, 2);
    /* Three CPUs, each of which the process has for half of the time. */
    parallelism_add(&parallelism, &process, &four, 8);
    process.cpus = 900;
    parallelism_add(&parallelism, &process, &many, 2);
    parallelism_divide(&parallelism, 1400, 1300, rows);
    assert_int_equal(rows[0], 100);
    assert_int_equal(rows[1], 700);
    assert_int_equal(rows[2], 300);
    assert_int_equal(rows[3], 100);
    assert_int_equal(rows[PARALLELISM_MAX], 200);
    for (size_t i = 0; i <= PARALLELISM_MAX; i++)
        all_ns += rows[i];
    assert_int_equal(all_ns, 1400);
    /* The chance that one of so many is idle is small, and that all are idle underflows. */
    const struct elapsed_instant busy = instant_of(200, 198);
    parallelism = (struct parallelism){0};
    process.cpus = 200;
    parallelism_add(&parallelism, &process, &busy, 10);
    parallelism_divide(&parallelism, 1000, 1000, rows);
    assert_in_range(rows[198], 200, 350);
    assert_int_equal(rows[1], 0);
    parallelism_divide(&(struct parallelism){0}, 1000, 7, rows);
    assert_true(rows[0] == 993 && rows[1] == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_one_thread_has_all_of_its_time),
        TEST(test_one_thread_and_then_eight),
        TEST(test_threads_that_take_turns_lose_nothing),
        TEST(test_bursts_at_random),
        TEST(test_a_wait_for_a_cpu_counts_if_nobody_runs),
        TEST(test_cpus_that_others_use_too),
        TEST(test_a_thread_that_no_tick_found),
        TEST(test_waits_by_their_rank),
        TEST(test_a_wait_while_others_are_awake),
        TEST(test_a_wait_that_goes_on),
        TEST(test_a_wait_is_placed_later),
        TEST(test_ticks_wait_for_short_waits),
        TEST(test_all_time_is_given),
        TEST(test_time_of_a_process_without_samples),
        TEST(test_parallelism),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
