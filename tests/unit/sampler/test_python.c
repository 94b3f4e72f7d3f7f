/* The Python frames of samples, which are kept from the record's message until the sample is read;
 * and which threads run Python. */
#include "unit.h"
#include "sampler/python.h"

#include <string.h>

#define AT_NS 1000000000u
#define NEAR_NS 30000u
#define FAR_NS 5000000u

static const struct python_layout layout = {.frame_is_entry = 25};
static struct sampled_process process;
static struct snapshot snapshot;

static int set_up(void **state)
{
    (void)state;
    process = (struct sampled_process){.python.place = {.runtime = 1, .layout = layout}};
    snapshot = (struct snapshot){0};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    snapshot_clear(&snapshot);
    python_forget(&process.python);
    return 0;
}

static void keep(pid_t tid, uint64_t at_ns, uint64_t code, size_t count)
{
    static struct switch_frame frames[SWITCH_FRAMES_MAX];
    for (size_t i = 0; i < count; i++)
        frames[i] = (struct switch_frame){code + 16 * i, code + 16 * i + 2, 0, i + 1 == count};
    const struct past_departure past = {
        .departure = {.tid = tid, .out_ns = at_ns},
        .frames = (const unsigned char *)frames,
        .frame_count = count,
        .frames_state = count == SWITCH_FRAMES_MAX ? SWITCH_FRAMES_CUT : SWITCH_FRAMES_WHOLE,
    };
    assert_int_equal(python_keep_copy(&process, &past), 0);
}

static uint32_t take(pid_t tid, uint64_t at_ns)
{
    const struct thread thread = {.tid = tid};
    if (snapshot.python)
        snapshot.python->state = PYTHON_FRAMES_NOT_READ;
    return python_take_copy(&process, &thread, at_ns, &snapshot);
}

static void test_a_sample_has_the_frames_of_its_moment(void **state)
{
    (void)state;
    keep(7, AT_NS, 0x1000, 3);
    keep(8, AT_NS, 0x2000, 2);
    keep(7, AT_NS + FAR_NS, 0x3000, 1);
    assert_int_equal(take(7, AT_NS + NEAR_NS), SWITCH_FRAMES_WHOLE);
    assert_int_equal(snapshot.python->state, PYTHON_FRAMES_READ);
    assert_int_equal(snapshot.python->count, 3);
    assert_int_equal(snapshot.python->items[1].code, 0x1010);
    assert_int_equal(snapshot.python->items[1].instruction, 0x1012);
    assert_false(snapshot.python->items[1].is_entry);
    assert_true(snapshot.python->items[2].is_entry);
    assert_int_equal(take(8, AT_NS + NEAR_NS), SWITCH_FRAMES_WHOLE);
    assert_int_equal(snapshot.python->items[0].code, 0x2000);
    /* The two times differ slightly, because the clocks are read one after the other. */
    assert_int_equal(take(7, AT_NS + FAR_NS - NEAR_NS), SWITCH_FRAMES_WHOLE);
    assert_int_equal(snapshot.python->items[0].code, 0x3000);
}

static void test_frames_of_another_moment_or_thread(void **state)
{
    (void)state;
    assert_int_equal(take(7, AT_NS), SWITCH_FRAMES_NONE); /* none came yet */
    keep(7, AT_NS, 0x1000, 3);
    assert_int_equal(take(7, AT_NS + FAR_NS), SWITCH_FRAMES_NONE);
    assert_int_equal(take(9, AT_NS), SWITCH_FRAMES_NONE);
    assert_null(snapshot.python);
}

static void test_more_frames_than_are_copied(void **state)
{
    (void)state;
    keep(7, AT_NS, 0x1000, SWITCH_FRAMES_MAX);
    assert_int_equal(take(7, AT_NS), SWITCH_FRAMES_CUT);
    assert_true(snapshot.python->is_cut);
    assert_int_equal(snapshot.python->count, SWITCH_FRAMES_MAX);
    /* Memory that held cut frames before does not affect a sample without frames. */
    assert_int_equal(take(7, AT_NS + FAR_NS), SWITCH_FRAMES_NONE);
}

static void test_old_ones_make_room(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++)
        keep(7, AT_NS + i * FAR_NS, 0x1000 * (i + 1), 1);
    assert_int_equal(take(7, AT_NS), SWITCH_FRAMES_NONE);
    assert_int_equal(take(7, AT_NS + 99 * (uint64_t)FAR_NS), SWITCH_FRAMES_WHOLE);
    assert_int_equal(snapshot.python->items[0].code, 0x1000 * 100);
}

/* ---- Threads of an interpreter ---- */

static struct python_thread_state states[2];
static size_t state_count;

int __wrap_python_threads_read(struct python_threads *threads, uint64_t runtime,
                               const struct python_memory *memory, size_t most);
int __wrap_python_threads_read(struct python_threads *threads, uint64_t runtime,
                               const struct python_memory *memory, size_t most)
{
    assert_int_equal(runtime, process.python.place.runtime);
    assert_int_equal(memory->tid, process.threads.items[0].tid);
    /* A list that is a circle must not hold up sampling. */
    assert_in_range(most, PYTHON_INTERPRETERS_MAX + process.threads.count, 1000);
    threads->items = malloc(sizeof states);
    assert_non_null(threads->items);
    memcpy(threads->items, states, sizeof states);
    threads->count = state_count;
    return 0;
}

static void update_after_long(void)
{
    process.python.listing = (struct throttle){0};
    assert_int_equal(python_update(&process), 0);
}

/* A sleeping thread is looked at again if its state has just become known, or is another one. */
static void test_threads_that_are_known_to_run_python_only_now(void **state)
{
    (void)state;
    struct program program = {.number = 1};
    struct thread items[] = {{.tid = 7}, {.tid = 8}};
    uint64_t due_ticks[] = {50, 50};
    process.program = &program;
    process.threads = (struct threads){.items = items, .count = 2, .due_ticks = due_ticks};
    states[0] = (struct python_thread_state){.native_id = 7, .state = 0x1000, .id = 7};
    state_count = 1;
    update_after_long();
    assert_true(items[0].wants.copy);
    assert_int_equal(due_ticks[0], 0);
    assert_false(items[1].wants.copy);
    assert_int_equal(due_ticks[1], 50);
    assert_int_equal(python_of(&process, &items[0]).state, 0x1000);
    assert_int_equal(python_of(&process, &items[1]).state, 0);
    items[0].wants.copy = false;
    update_after_long();
    assert_false(items[0].wants.copy);
    states[0].state = 0x2000;
    states[1] = (struct python_thread_state){.native_id = 8, .state = 0x3000, .id = 8};
    state_count = 2;
    update_after_long();
    assert_true(items[0].wants.copy);
    assert_true(items[1].wants.copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_sample_has_the_frames_of_its_moment, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_frames_of_another_moment_or_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_more_frames_than_are_copied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_old_ones_make_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_threads_that_are_known_to_run_python_only_now, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
