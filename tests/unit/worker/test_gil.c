#include "worker/gil.h"
#include "unit.h"

#include <stdalign.h>

#define PROGRAM 7
#define NATIVE_ID_AT 24
#define CONDITION_AT 32
#define FUTEX_AT 72 /* the word of the condition variable that glibc waits on */

/* struct _gil_runtime_state, and the PyThreadState of the thread that holds the lock. It must not
 * cross a page: only the futex's own page is read before it. */
static struct {
    alignas(128) uint64_t interval;
    uint64_t last_holder;
    uint32_t locked, unused;
    uint64_t switch_number;
    unsigned char condition[48];
} gil_state;
static unsigned char holder[64];
static struct gils gils;
static struct program program = {.number = PROGRAM};
static struct observation observation;

static int set_up(void **state)
{
    (void)state;
    uint64_t id = 4242;
    const struct gil gil = {PROGRAM, (uintptr_t)&gil_state, {.thread_native_id = NATIVE_ID_AT}};
    memcpy(holder + NATIVE_ID_AT, &id, sizeof id);
    gil_state.last_holder = (uintptr_t)holder;
    gil_state.locked = 1;
    observation = (struct observation){.tid = getpid(), .program = &program};
    observation.wait.call = (struct call_target){
        .kind = CALL_FUTEX, .address = (uintptr_t)&gil_state + FUTEX_AT, .value = 0};
    return gils_add(&gils, &gil);
}

static int tear_down(void **state)
{
    (void)state;
    gils_free(&gils);
    return 0;
}

/* Reads what is before the futex, as the sampler does. */
static void read_memory(void)
{
    struct call_memory *memory = &observation.wait.memory;
    memset(memory, 0, sizeof *memory);
    const struct call_reading reading = {&observation.wait.call, memory};
    assert_int_equal(call_read_many(getpid(), &reading, 1), 0);
}

static struct lock note(void)
{
    struct lock lock = {.kind = RESOURCE_CONDITION, .address = observation.wait.call.address};
    read_memory();
    gils_note(&gils, &observation, &observation.wait.memory, &lock);
    return lock;
}

static void test_the_holder(void **state)
{
    (void)state;
    struct lock lock = note();
    assert_int_equal(lock.kind, RESOURCE_GIL);
    assert_int_equal(lock.address, (uintptr_t)&gil_state);
    assert_int_equal(lock.owner, 4242);
}

static void test_a_lock_that_nobody_holds(void **state)
{
    (void)state;
    gil_state.locked = 0; /* last_holder stays set */
    struct lock lock = note();
    assert_int_equal(lock.kind, RESOURCE_GIL);
    assert_int_equal(lock.owner, 0);
}

static void test_a_wild_holder(void **state)
{
    (void)state;
    gil_state.last_holder = 16;
    assert_int_equal(note().owner, 0);
    gil_state.last_holder = UINT64_MAX - 8;
    assert_int_equal(note().owner, 0);
}

static void test_other_futexes_and_programs(void **state)
{
    (void)state;
    static uint32_t elsewhere[64];
    observation.wait.call.address = (uintptr_t)&elsewhere[48];
    assert_int_equal(note().kind, RESOURCE_CONDITION);
    observation.wait.call.address = (uintptr_t)&gil_state + CONDITION_AT - 4;
    assert_int_equal(note().kind, RESOURCE_CONDITION);
    observation.wait.call.address = (uintptr_t)&gil_state + FUTEX_AT;
    program.number = PROGRAM + 1;
    assert_int_equal(note().kind, RESOURCE_CONDITION);
    program.number = PROGRAM;
    assert_int_equal(note().kind, RESOURCE_GIL);
    gils_forget(&gils, PROGRAM);
    assert_int_equal(note().kind, RESOURCE_CONDITION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_holder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_lock_that_nobody_holds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_wild_holder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_futexes_and_programs, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
