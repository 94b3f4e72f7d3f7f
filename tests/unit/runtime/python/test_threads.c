#include "runtime/python/threads.h"
#include "unit.h"

#include <pthread.h>
#include <unistd.h>

/* In this process, laid out as in CPython 3.12. */
static unsigned char runtime[0x40], interpreters[2][0x60], states[4][0xa0];
static struct python_place place;
static struct python_threads threads;

static void put(void *at, size_t offset, uint64_t value)
{
    memcpy((unsigned char *)at + offset, &value, sizeof value);
}

/* Two interpreters, with 3 threads and 1. */
static void begin(void)
{
    const struct python_layout *layout = python_layout_of(0x030c01f0);
    static const uint64_t ids[] = {300, 100, 0, 200};
    assert_non_null(layout);
    place = (struct python_place){(uintptr_t)runtime, *layout};
    put(runtime, layout->runtime_interpreters, (uintptr_t)interpreters[0]);
    put(interpreters[0], layout->interpreter_next, (uintptr_t)interpreters[1]);
    put(interpreters[0], layout->interpreter_threads, (uintptr_t)states[0]);
    put(interpreters[1], layout->interpreter_next, 0);
    put(interpreters[1], layout->interpreter_threads, (uintptr_t)states[3]);
    for (size_t i = 0; i < 4; i++) {
        put(states[i], layout->thread_native_id, ids[i]);
        put(states[i], layout->thread_next, i < 2 ? (uintptr_t)states[i + 1] : 0);
    }
}

static int read_threads(size_t most)
{
    const struct python_memory memory = {.layout = &place.layout, .tid = getpid()};
    return python_threads_read(&threads, place.runtime, &memory, most);
}

static void test_threads_of_all_interpreters(void **state)
{
    (void)state;
    begin();
    assert_int_equal(read_threads(PYTHON_STATES_MAX), 0);
    assert_int_equal(threads.count, 3); /* one has not started yet */
    assert_int_equal(python_threads_find(&threads, 100).state, (uintptr_t)states[1]);
    assert_int_equal(python_threads_find(&threads, 200).state, (uintptr_t)states[3]);
    assert_int_equal(python_threads_find(&threads, 300).state, (uintptr_t)states[0]);
    assert_int_equal(python_threads_find(&threads, 0).state, 0);
    assert_int_equal(python_threads_find(&threads, 150).state, 0);
    python_threads_free(&threads);
    assert_int_equal(python_threads_find(&threads, 100).state, 0);
}

/* Before 3.11, a thread state has only the result of pthread_self(). */
static void test_threads_by_their_pthread(void **state)
{
    (void)state;
    begin();
    place.layout.has_frame_objects = true;
    put(states[0], place.layout.thread_native_id, (uint64_t)pthread_self());
    assert_int_equal(read_threads(PYTHON_STATES_MAX), 0);
    assert_int_equal(threads.count, 1); /* the others are not addresses */
    assert_int_equal(python_threads_find(&threads, gettid()).state, (uintptr_t)states[0]);
    assert_int_equal(python_threads_find(&threads, gettid()).id, (uint64_t)pthread_self());
    python_threads_free(&threads);
}

static void test_a_circle_ends(void **state)
{
    (void)state;
    begin();
    put(states[2], place.layout.thread_next, (uintptr_t)states[0]);
    assert_int_equal(read_threads(PYTHON_STATES_MAX), 0);
    assert_true(threads.count > 3 && threads.count <= PYTHON_STATES_MAX);
    assert_int_equal(python_threads_find(&threads, 300).state, (uintptr_t)states[0]);
    assert_int_equal(read_threads(10), 0);
    assert_true(threads.count > 3 && threads.count <= 10);
    put(interpreters[1], place.layout.interpreter_next, (uintptr_t)interpreters[1]);
    put(interpreters[0], place.layout.interpreter_threads, 0);
    assert_int_equal(read_threads(PYTHON_STATES_MAX), 0);
    assert_int_equal(python_threads_find(&threads, 200).state, (uintptr_t)states[3]);
    python_threads_free(&threads);
}

/* Even a cycle of threads that have not started. */
static void test_a_circle_of_nothing_ends(void **state)
{
    (void)state;
    for (int has_frame_objects = 0; has_frame_objects < 2; has_frame_objects++) {
        begin();
        place.layout.has_frame_objects = has_frame_objects;
        put(states[2], place.layout.thread_next, (uintptr_t)states[2]);
        put(states[3], place.layout.thread_native_id, UINT64_MAX);
        put(states[3], place.layout.thread_next, (uintptr_t)states[3]);
        assert_int_equal(read_threads(PYTHON_STATES_MAX), 0);
        assert_int_equal(threads.count, has_frame_objects ? 0 : 2);
    }
    python_threads_free(&threads);
}

static void test_wild_pointers(void **state)
{
    (void)state;
    begin();
    put(states[0], place.layout.thread_next, 64);
    put(interpreters[0], place.layout.interpreter_next, UINT64_MAX - 4);
    assert_int_equal(read_threads(PYTHON_STATES_MAX), 0);
    assert_int_equal(threads.count, 1);
    place.runtime = 8;
    assert_int_equal(read_threads(PYTHON_STATES_MAX), 0);
    assert_int_equal(threads.count, 0);
    python_threads_free(&threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_of_all_interpreters),
        cmocka_unit_test(test_threads_by_their_pthread),
        cmocka_unit_test(test_a_circle_ends),
        cmocka_unit_test(test_a_circle_of_nothing_ends),
        cmocka_unit_test(test_wild_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
