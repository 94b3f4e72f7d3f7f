/* How long the tasks of asyncio are read: by a clock that only the reading of a task moves. */
#include "unit.h"
#include "base/array.h"
#include "worker/python_tasks.h"

#define TASK_NS 1000000u
#define MANY 30000u

static struct results results;
static struct program_tasks tasks;
static struct program_python python;
static struct space space;
static struct runtime_tasks list;
static struct means means;
static uint64_t now_ns;
static size_t reads;

uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void)
{
    return now_ns;
}

int __wrap_python_tasks_read(struct python_tasks *read, const struct python_tasks_place *place,
                             const struct python_memory *memory);
int __wrap_python_tasks_read(struct python_tasks *read, const struct python_tasks_place *place,
                             const struct python_memory *memory)
{
    (void)place;
    read->count = 0;
    read->is_cut = python_time_is_over(memory);
    return read->is_cut ? 0 : array_extend(&read->items, &read->count, &read->capacity, MANY);
}

enum python_task_state __wrap_python_task_read(const struct python_tasks_place *place,
                                               const struct python_memory *memory,
                                               struct python_task *task,
                                               struct python_frames *ret_frames);
enum python_task_state __wrap_python_task_read(const struct python_tasks_place *place,
                                               const struct python_memory *memory,
                                               struct python_task *task,
                                               struct python_frames *ret_frames)
{
    (void)place, (void)memory, (void)task, (void)ret_frames;
    now_ns += TASK_NS;
    reads++;
    return PYTHON_TASK_GONE;
}

static int set_up(void **state)
{
    (void)state;
    now_ns = 1000000000;
    reads = 0;
    tasks = (struct program_tasks){0};
    python_tasks_take_version(&tasks.place, 0x030e00f0);
    means = (struct means){.results = &results, .period_ns = 10000000};
    return results_init(&results);
}

static int tear_down(void **state)
{
    (void)state;
    program_tasks_free(&tasks);
    results_free(&results);
    return 0;
}

static void take(bool is_last, uint64_t at_ns)
{
    const struct program_maps maps = {.space = &space};
    struct program program = {.proc_fd = -1, .mem_fd = -1};
    const struct observation observation = {.program = &program, .tid = getpid()};
    const struct task_tick tick = {.before_ns = 1, .at_ns = at_ns, .is_last = is_last};
    assert_int_equal(program_tasks_take(&tasks, &means, &python, &maps, &observation, &tick), 0);
}

static void test_a_tick_reads_a_part(void **state)
{
    (void)state;
    take(false, 2);
    assert_int_equal(reads, 10);
    take(false, 3);
    assert_int_equal(reads, 20);
    assert_int_equal(results.counts.tasks_cut, 0);
}

static void test_the_end_takes_no_more_than_a_second(void **state)
{
    (void)state;
    take(true, 2);
    assert_int_equal(reads, 1000);
    assert_int_equal(results.counts.tasks_cut, 1);
}

/* The end reads the rest, and then all for the last time, for a second each. */
static void test_the_end_of_a_pass(void **state)
{
    (void)state;
    take(false, 2);
    take(true, 3);
    assert_int_equal(reads, 2010);
    assert_int_equal(results.counts.tasks_cut, 2);
}

static void test_a_dump_takes_no_more_than_ten_seconds(void **state)
{
    (void)state;
    means.tasks = &list;
    take(true, 0);
    assert_int_equal(reads, 10000);
    assert_int_equal(results.counts.tasks_cut, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_tick_reads_a_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_end_takes_no_more_than_a_second, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_the_end_of_a_pass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_dump_takes_no_more_than_ten_seconds, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("python_tasks", tests, NULL, NULL);
}
