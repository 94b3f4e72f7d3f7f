#include "runtime/python/tasks.h"
#include "base/clock.h"
#include "unit.h"

/* In this process, laid out as in CPython 3.13 and 3.14: words, by number. */
#define WORDS 64
#define AT(object, bytes) (*(uint64_t *)((unsigned char *)(object) + (bytes)))
#define ADDRESS(object) ((uint64_t)(uintptr_t)(object))

static uint64_t coroutine_type[2], wrapper_type[2], integer_type[2], set_type[2], other_type[2];
static uint64_t runtime[32], interpreter[64], thread[64], tasks_memory[4][WORDS];
static uint64_t coroutines[4][WORDS], wrapper[4], future[WORDS], names[4][16];
static uint64_t set[8], table[8][2], dicts[3][8], keys[3][16], module[4], weak_set[8],
    references[2][4], weak_set_type[112], type_keys[16], data_name[16];
static struct python_layout layout;
static struct python_tasks_place place;
static struct python_memory memory;
static struct python_tasks tasks;
static struct python_frames frames;

enum { NAME = 64, AWAITED_BY = 32, IS_TASK = 40, IS_SET = 41, WAITER = 48, CORO = 56, NODE = 72 };
enum { INTERPRETER_TASKS = 256, THREAD_TASKS = 320 };
enum { GEN_STATE = 67, FRAME = 72, FRAME_STACK = 64, FRAME_INSTRUCTION = 56, LOCALS = 72 };
enum { CREATED = -3, AWAITING = -1, EXECUTING = 0, CLEARED = 4 };

static void set_text(uint64_t *object, const char *text)
{
    memset(object, 0, sizeof names[0]);
    AT(object, 8) = ADDRESS(other_type);
    AT(object, layout.text_length) = strlen(text);
    AT(object, layout.text_state) = 1u << 2 | 1u << 5 | 1u << 6;
    strcpy((char *)object + layout.ascii_text, text);
}

/* A coroutine that runs `code` and awaits another object. */
static void set_coroutine(uint64_t *object, uint64_t code, const void *awaited, int state)
{
    bool has_address = !place.version || place.task_node;
    memset(object, 0, sizeof coroutines[0]);
    AT(object, 8) = ADDRESS(coroutine_type);
    ((signed char *)object)[GEN_STATE] = (signed char)state;
    AT(object, FRAME + layout.frame_code) = code | 1;
    AT(object, FRAME + FRAME_INSTRUCTION) = code + 0x100;
    AT(object, FRAME + LOCALS + 16) = ADDRESS(awaited) | 1;
    AT(object, FRAME + FRAME_STACK) = has_address ? ADDRESS(object) + FRAME + LOCALS + 24 : 3;
}

static void set_task(size_t i, const uint64_t *coroutine, const char *name, uint64_t waiter)
{
    uint64_t *task = tasks_memory[i];
    memset(task, 0, sizeof tasks_memory[i]);
    if (name)
        set_text(names[i], name);
    AT(task, place.task_name) = ADDRESS(names[i]);
    AT(task, place.task_coroutine) = ADDRESS(coroutine);
    AT(task, place.task_waiter) = waiter;
    if (place.task_is_task)
        ((unsigned char *)task)[IS_TASK] = 1;
}

static void begin(uint32_t version)
{
    static const uint64_t offsets[PYTHON_ASYNCIO_WORDS] = {
        160,  NAME, AWAITED_BY, IS_TASK,     IS_SET, CORO, NODE, 4096, INTERPRETER_TASKS,
        4096, 0,    0,          THREAD_TASKS};
    layout = *python_layout_of(0x030c01f0);
    python_tasks_free(&tasks);
    place = (struct python_tasks_place){
        .runtime = ADDRESS(runtime),
        .layout = layout,
        .types = {.generators = {ADDRESS(coroutine_type)},
                  .wrappers = {ADDRESS(wrapper_type)},
                  .integer = ADDRESS(integer_type),
                  .set = ADDRESS(set_type)},
    };
    python_tasks_take_version(&place, version);
    assert_non_null(place.version);
    if (version >> 16 >= 0x030e)
        assert_true(python_tasks_take_offsets(&place, offsets));
    memory = (struct python_memory){.layout = &layout, .version = version, .tid = getpid()};
    memset(thread, 0, sizeof thread);
    memset(interpreter, 0, sizeof interpreter);
    AT(runtime, layout.runtime_interpreters) = ADDRESS(interpreter);
    AT(runtime, layout.runtime_interpreters + 8) = ADDRESS(interpreter);
    AT(interpreter, layout.interpreter_threads) = ADDRESS(thread);
    AT(thread, layout.thread_native_id) = 7;
}

/* Tasks 0 and 1 belong to a running thread, task 2 to one that has ended. */
static void link_lists(void)
{
    AT(thread, THREAD_TASKS) = ADDRESS(tasks_memory[0]) + NODE;
    AT(tasks_memory[0], NODE) = ADDRESS(tasks_memory[1]) + NODE;
    AT(tasks_memory[1], NODE) = ADDRESS(thread) + THREAD_TASKS;
    AT(interpreter, INTERPRETER_TASKS) = ADDRESS(tasks_memory[2]) + NODE;
    AT(tasks_memory[2], NODE) = ADDRESS(interpreter) + INTERPRETER_TASKS;
}

static void make_tasks(void)
{
    memset(future, 0, sizeof future);
    AT(future, 8) = ADDRESS(other_type);
    wrapper[1] = ADDRESS(wrapper_type);
    wrapper[2] = ADDRESS(coroutines[1]);
    set_coroutine(coroutines[0], 0x1000, wrapper, AWAITING);
    set_coroutine(coroutines[1], 0x2000, coroutines[2], AWAITING);
    set_coroutine(coroutines[2], 0x3000, future, AWAITING);
    set_coroutine(coroutines[3], 0x4000, coroutines[0], CREATED);
    set_task(0, coroutines[0], "first", 8);
    set_task(1, coroutines[3], NULL, 0);
    set_task(2, coroutines[2], "Task-12", 0);
    AT(names[1], 8) = ADDRESS(integer_type);
    AT(names[1], 16) = 2 << 3;
    AT(names[1], 24) = 5 | 1ull << 32;
}

static enum python_task_state read_first(void)
{
    assert_int_equal(python_tasks_read(&tasks, &place, &memory), 0);
    assert_true(tasks.count > 0);
    return python_task_read(&place, &memory, &tasks.items[0], &frames);
}

static void check_chain(void)
{
    assert_int_equal(read_first(), PYTHON_TASK_WAITING);
    assert_int_equal(frames.count, 3);
    assert_false(frames.is_cut);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(frames.items[i].code, 0x3000 - i * 0x1000);
        assert_int_equal(frames.items[i].instruction, 0x3100 - i * 0x1000);
    }
}

static void test_lists(void **state)
{
    char name[PYTHON_TEXT_BYTES];
    bool is_made_up;
    (void)state;
    begin(0x030e00f0);
    make_tasks();
    link_lists();
    check_chain();
    assert_int_equal(tasks.count, 3);
    assert_false(tasks.is_cut);
    python_task_name(&place, &memory, &tasks.items[0], name, &is_made_up);
    assert_string_equal(name, "first");
    assert_false(is_made_up);
    /* An integer with two digits of 30 bits. */
    assert_int_equal(python_task_read(&place, &memory, &tasks.items[1], &frames), PYTHON_TASK_NEW);
    assert_int_equal(frames.count, 1);
    python_task_name(&place, &memory, &tasks.items[1], name, &is_made_up);
    assert_string_equal(name, "Task-1073741829");
    assert_true(is_made_up);
    assert_int_equal(python_task_read(&place, &memory, &tasks.items[2], &frames),
                     PYTHON_TASK_READY);
    python_task_name(&place, &memory, &tasks.items[2], name, &is_made_up);
    assert_true(is_made_up);
}

static void test_3_15_awaits_below_the_top(void **state)
{
    (void)state;
    begin(0x030f00f0);
    make_tasks();
    link_lists();
    for (size_t i = 0; i < 3; i++) {
        ((signed char *)coroutines[i])[GEN_STATE] = 2;
        AT(coroutines[i], FRAME + FRAME_STACK) += 8;
    }
    check_chain();
}

static void test_states(void **state)
{
    (void)state;
    begin(0x030e00f0);
    make_tasks();
    link_lists();
    ((signed char *)coroutines[0])[GEN_STATE] = EXECUTING;
    assert_int_equal(read_first(), PYTHON_TASK_RUNNING);
    assert_int_equal(frames.count, 0);
    ((signed char *)coroutines[0])[GEN_STATE] = CLEARED;
    assert_int_equal(read_first(), PYTHON_TASK_GONE);
    /* A coroutine made by a compiler. */
    AT(coroutines[0], 8) = ADDRESS(other_type);
    assert_int_equal(read_first(), PYTHON_TASK_WAITING);
    assert_int_equal(frames.count, 0);
    AT(tasks_memory[0], CORO) = 0;
    assert_int_equal(read_first(), PYTHON_TASK_GONE);
}

/* The listed task is older than what is in memory. */
static void test_a_task_that_goes_on(void **state)
{
    (void)state;
    begin(0x030e00f0);
    make_tasks();
    link_lists();
    check_chain();
    AT(tasks_memory[0], WAITER) = 0;
    AT(tasks_memory[0], CORO) = ADDRESS(coroutines[2]);
    assert_int_equal(python_task_read(&place, &memory, &tasks.items[0], &frames),
                     PYTHON_TASK_READY);
    assert_int_equal(frames.count, 1);
    tasks.items[0].address = 64;
    assert_int_equal(python_task_read(&place, &memory, &tasks.items[0], &frames), PYTHON_TASK_GONE);
}

static void set_awaiters(uint64_t *task, bool is_set, const void *awaiters)
{
    AT(task, AWAITED_BY) = ADDRESS(awaiters);
    ((unsigned char *)task)[IS_SET] = is_set;
}

static void test_awaited_by(void **state)
{
    char text[PYTHON_AWAITED_BY_BYTES];
    (void)state;
    begin(0x030e00f0);
    make_tasks();
    link_lists();
    check_chain();
    python_task_awaited_by(&place, &memory, &tasks.items[0], text);
    assert_string_equal(text, "");
    /* A set with a task, a removed entry, and a future, which a task awaits, and later the future
     * itself. */
    memset(table, 0, sizeof table);
    set[1] = ADDRESS(set_type);
    set[4] = 7;
    set[5] = ADDRESS(table);
    table[1][0] = ADDRESS(tasks_memory[2]);
    table[3][0] = ADDRESS(tasks_memory[1]);
    table[3][1] = UINT64_MAX;
    table[7][0] = ADDRESS(future);
    set_awaiters(tasks_memory[0], true, set);
    set_awaiters(future, false, tasks_memory[1]);
    check_chain();
    python_task_awaited_by(&place, &memory, &tasks.items[0], text);
    assert_string_equal(text, "\"Task-12\", \"Task-1073741829\"");
    set_awaiters(future, false, future);
    python_task_awaited_by(&place, &memory, &tasks.items[0], text);
    assert_string_equal(text, "\"Task-12\"");
    set[4] = UINT64_MAX / 2;
    python_task_awaited_by(&place, &memory, &tasks.items[0], text);
    assert_string_equal(text, "");
}

static void test_hostile_lists_and_chains(void **state)
{
    (void)state;
    begin(0x030e00f0);
    make_tasks();
    link_lists();
    AT(tasks_memory[1], NODE) = ADDRESS(tasks_memory[0]) + NODE;
    AT(coroutines[2], FRAME + LOCALS + 16) = ADDRESS(coroutines[0]);
    assert_int_equal(read_first(), PYTHON_TASK_WAITING);
    assert_int_equal(tasks.count, PYTHON_TASKS_MAX);
    assert_true(tasks.is_cut);
    assert_int_equal(frames.count, PYTHON_COROUTINES_MAX);
    assert_true(frames.is_cut);
    AT(tasks_memory[1], NODE) = 64;
    AT(coroutines[2], FRAME + FRAME_STACK) = 4;
    assert_int_equal(read_first(), PYTHON_TASK_WAITING);
    assert_true(tasks.is_cut);
    assert_int_equal(frames.count, 3);
    AT(coroutines[2], FRAME + FRAME_STACK) = UINT64_MAX;
    assert_int_equal(read_first(), PYTHON_TASK_WAITING);
    /* Objects that run each other. */
    wrapper[2] = ADDRESS(wrapper);
    assert_int_equal(read_first(), PYTHON_TASK_WAITING);
    assert_int_equal(frames.count, 1);
    AT(tasks_memory[0], CORO) = UINT64_MAX - 7;
    assert_int_equal(read_first(), PYTHON_TASK_WAITING);
    assert_int_equal(frames.count, 0);
}

/* A list that is a circle, of tasks whose coroutines await themselves. */
static void test_there_is_no_time_for_all(void **state)
{
    (void)state;
    begin(0x030e00f0);
    make_tasks();
    link_lists();
    AT(tasks_memory[1], NODE) = ADDRESS(tasks_memory[0]) + NODE;
    set_coroutine(coroutines[0], 0x1000, coroutines[0], AWAITING);
    memory.until_ns = monotonic_ns() + 1000000;
    assert_int_equal(python_tasks_read(&tasks, &place, &memory), 0);
    assert_true(tasks.is_cut);
    assert_true(tasks.count < PYTHON_TASKS_MAX);
    memory.until_ns = UINT64_MAX;
    AT(tasks_memory[1], NODE) = ADDRESS(thread) + THREAD_TASKS;
    assert_int_equal(read_first(), PYTHON_TASK_WAITING);
    assert_false(tasks.is_cut);
    assert_int_equal(tasks.count, 3);
    assert_int_equal(frames.count, PYTHON_COROUTINES_MAX);
    /* Less than reading a few of them takes: what is missing would be at the leaf. */
    memory.until_ns = monotonic_ns() + 10000;
    assert_int_equal(python_task_read(&place, &memory, &tasks.items[0], &frames), PYTHON_TASK_GONE);
    assert_true(frames.count < PYTHON_COROUTINES_MAX);
    memory.until_ns = 1;
    assert_int_equal(python_tasks_read(&tasks, &place, &memory), 0);
    assert_true(tasks.is_cut);
    assert_int_equal(tasks.count, 0);
}

static void test_offsets_that_make_no_sense(void **state)
{
    static const uint64_t good[PYTHON_ASYNCIO_WORDS] = {
        160,  NAME, AWAITED_BY, IS_TASK,     IS_SET, CORO, NODE, 4096, INTERPRETER_TASKS,
        4096, 0,    0,          THREAD_TASKS};
    (void)state;
    begin(0x030e00f0);
    for (size_t i = 0; i < PYTHON_ASYNCIO_WORDS; i++) {
        uint64_t bad[PYTHON_ASYNCIO_WORDS];
        memcpy(bad, good, sizeof bad);
        bad[i] = (uint64_t)1 << 40;
        bool is_used = i != 10 && i != 11; /* except what runs on each thread */
        assert_int_equal(python_tasks_take_offsets(&place, bad), !is_used);
        bad[i] = UINT64_MAX;
        assert_int_equal(python_tasks_take_offsets(&place, bad), !is_used);
    }
}

/* ---- Before 3.14 ---- */

/* A dictionary with one string key. */
static void set_dict(size_t i, const char *name, const void *value)
{
    set_text(names[i], name);
    dicts[i][4] = ADDRESS(keys[i]);
    memset(keys[i], 0, sizeof keys[i]);
    ((unsigned char *)keys[i])[9] = 3;
    ((unsigned char *)keys[i])[10] = 1;
    AT(keys[i], 24) = 1;
    AT(keys[i], 40) = ADDRESS(names[i]);
    AT(keys[i], 48) = ADDRESS(value);
}

static void make_weak_set(uint32_t version)
{
    begin(version);
    place.modules =
        (struct python_modules){ADDRESS(runtime) + layout.runtime_interpreters + 8, 128};
    make_tasks();
    AT(interpreter, place.modules.offset) = ADDRESS(dicts[0]);
    set_dict(0, "asyncio.tasks", module);
    set_dict(1, version >> 16 == 0x030b ? "_all_tasks" : "_scheduled_tasks", &weak_set[4]);
    module[2] = ADDRESS(dicts[1]);
    memset(weak_set, 0, sizeof weak_set);
    set_text(data_name, "data");
    ((unsigned char *)type_keys)[9] = 3;
    ((unsigned char *)type_keys)[10] = 2; /* string keys, without values */
    AT(type_keys, 24) = 1;
    AT(type_keys, 40) = ADDRESS(data_name);
    AT(weak_set_type, version >> 16 == 0x030b ? 872 : 880) = ADDRESS(type_keys);
    AT(weak_set_type, 168) = version >> 16 == 0x030d ? 1u << 2 : 0;
    weak_set[5] = ADDRESS(weak_set_type);
    memset(table, 0, sizeof table);
    set[1] = ADDRESS(set_type);
    set[4] = 7;
    set[5] = ADDRESS(table);
    for (size_t i = 0; i < 2; i++) {
        references[i][2] = i ? 0 : ADDRESS(tasks_memory[0]); /* one is dead */
        table[3 * i][0] = ADDRESS(references[i]);
    }
}

static void test_sets(void **state)
{
    static uint64_t values[1];
    (void)state;
    values[0] = ADDRESS(set);
    make_weak_set(0x030d00f0);
    weak_set[6] = 1u << 24;
    weak_set[7] = ADDRESS(set);
    check_chain();
    assert_int_equal(tasks.count, 1);
    make_weak_set(0x030c01f0);
    weak_set[1] = ADDRESS(values) - 1;
    check_chain();
    make_weak_set(0x030b02f0);
    place.version = NULL; /* generators have another layout: only the list is read */
    python_tasks_take_version(&place, 0x030b02f0);
    weak_set[0] = ADDRESS(values);
    assert_int_equal(python_tasks_read(&tasks, &place, &memory), 0);
    assert_int_equal(tasks.count, 1);
    memory.until_ns = 1;
    assert_int_equal(python_tasks_read(&tasks, &place, &memory), 0);
    assert_int_equal(tasks.count, 0);
    assert_true(tasks.is_cut);
    /* Its __dict__ has been accessed. */
    make_weak_set(0x030d00f0);
    weak_set[1] = ADDRESS(dicts[2]);
    set_dict(2, "data", set);
    assert_int_equal(python_tasks_read(&tasks, &place, &memory), 0);
    assert_int_equal(tasks.count, 1);
}

static void test_hostile_sets(void **state)
{
    (void)state;
    make_weak_set(0x030d00f0);
    weak_set[6] = 1u << 24;
    weak_set[7] = ADDRESS(set);
    table[5][0] = 3;
    table[6][0] = UINT64_MAX - 3;
    check_chain();
    set[4] = UINT64_MAX - 1;
    assert_int_equal(python_tasks_read(&tasks, &place, &memory), 0);
    assert_int_equal(tasks.count, 0);
    set[4] = 7;
    AT(keys[0], 24) = UINT64_MAX;
    assert_int_equal(python_tasks_read(&tasks, &place, &memory), 0);
    assert_int_equal(tasks.count, 0);
    AT(keys[0], 24) = 1;
    ((unsigned char *)keys[0])[9] = 255;
    assert_int_equal(python_tasks_read(&tasks, &place, &memory), 0);
    assert_int_equal(tasks.count, 0);
    dicts[0][4] = 9;
    assert_int_equal(python_tasks_read(&tasks, &place, &memory), 0);
    assert_int_equal(tasks.count, 0);
}

static void test_versions_that_are_not_known(void **state)
{
    (void)state;
    python_tasks_take_version(&place, 0x030a00f0);
    assert_null(place.version);
    python_tasks_take_version(&place, 0x031000f0);
    assert_null(place.version);
}

int main(void)
{
    const struct CMUnitTest tests_of_tasks[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_3_15_awaits_below_the_top),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_a_task_that_goes_on),
        cmocka_unit_test(test_awaited_by),
        cmocka_unit_test(test_hostile_lists_and_chains),
        cmocka_unit_test(test_there_is_no_time_for_all),
        cmocka_unit_test(test_offsets_that_make_no_sense),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_hostile_sets),
        cmocka_unit_test(test_versions_that_are_not_known),
    };
    int failed = cmocka_run_group_tests(tests_of_tasks, NULL, NULL);
    python_tasks_free(&tasks);
    return failed;
}
