/* What the reader learns of objects that threads allocate, pass on and free: every free of an
 * object that it knows, and no free before its allocation. The test itself calls the functions that
 * malloc and free call in a program, so that it can be built with ThreadSanitizer. */
#include "unit.h"
#include "reader.h"
#include "agent/objects.h"
#include "agent/segment.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define THREADS 4u
#define SLOTS 512u

static struct reader reader;
static _Atomic(void *) slots[SLOTS];
static _Atomic bool is_enough;

static void *make(size_t bytes)
{
    bool due = object_is_due(bytes, AGENT_WANTS_HEAP);
    void *object = calloc(1, bytes);
    if (due && object)
        object_made(object, bytes);
    return object;
}

static void give_back(void *object)
{
    if (object)
        object_gone(object);
    free(object);
}

static void *exchange_objects(void *context)
{
    uint64_t random = (uintptr_t)context;
    while (!is_enough) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        give_back(atomic_exchange(&slots[random >> 40 & (SLOTS - 1)], make(64 + (random >> 60))));
    }
    return NULL;
}

/* Leaves the CPUs to the writers. */
static void rest(void)
{
    const struct timespec moment = {.tv_nsec = 100000};
    nanosleep(&moment, NULL);
}

/* Runs the threads until `meanwhile` returns true. */
static void run(bool (*meanwhile)(void))
{
    pthread_t threads[THREADS];
    is_enough = false;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, exchange_objects, (void *)(i + 1)), 0);
    while (!meanwhile())
        rest();
    is_enough = true;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < SLOTS; i++)
        give_back(atomic_exchange(&slots[i], NULL));
    while (reader_drain(&reader)) {
    }
}

static bool drain_many(void)
{
    reader_drain(&reader);
    /* If the machine stalls for ten seconds, the agent takes its reader for dead and turns itself
     * off. */
    atomic_store(&reader.header->wanted, AGENT_WANTS_HEAP);
    return reader.made > 5000;
}

static void test_every_free_is_told(void **state)
{
    (void)state;
    reader_start(&reader, AGENT_WANTS_HEAP, 200);
    run(drain_many);
    assert_int_equal(reader.unknown, 0);
    assert_int_equal(reader.twice, 0);
    assert_int_equal(reader.header->gone_lost, 0);
    assert_int_equal(reader.live, 0);
    assert_int_equal(reader.header->live, 0);
    assert_int_equal(process->live, 0);
}

/* The reader starts new epochs repeatedly. It gets the free of every object that was reported in
 * the current epoch. */
static bool drain_and_restart(void)
{
    static unsigned times;
    reader_drain(&reader);
    if (++times % 2 == 0)
        reader_start(&reader, AGENT_WANTS_HEAP, 200);
    return times == 100;
}

static void test_new_epochs(void **state)
{
    (void)state;
    reader_start(&reader, AGENT_WANTS_HEAP, 200);
    run(drain_and_restart);
    assert_int_equal(reader.twice, 0);
    assert_int_equal(reader.header->gone_lost, 0);
    assert_int_equal(reader.live, 0);
    assert_int_equal(reader.header->live, 0);
}

/* Frees of objects from before the current epoch are not reported. */
static void test_objects_of_the_epoch_before(void **state)
{
    (void)state;
    reader_start(&reader, AGENT_WANTS_HEAP, 1);
    void *before = make(64);
    while (reader_drain(&reader)) {
    }
    assert_int_equal(reader.live, 1);
    uint64_t unknown = reader.unknown;
    reader_start(&reader, AGENT_WANTS_HEAP, 1);
    void *since = make(64);
    give_back(before);
    while (reader_drain(&reader)) {
    }
    assert_int_equal(reader.unknown, unknown);
    assert_int_equal(reader.live, 1);
    assert_int_equal(process->live, 1);
    give_back(since);
    while (reader_drain(&reader)) {
    }
    assert_int_equal(reader.live, 0);
    assert_int_equal(process->live, 0);
}

static bool wait_a_moment(void)
{
    static unsigned times;
    return ++times == 10;
}

static void test_nothing_while_idle(void **state)
{
    (void)state;
    reader_stop(&reader);
    uint64_t written = reader.header->written;
    run(wait_a_moment);
    assert_true(reader.header->written == written);
}

/* An object whose free the agent did not see, and whose address is allocated again. */
static void test_same_address_again(void **state)
{
    (void)state;
    static char object[100];
    reader_start(&reader, AGENT_WANTS_HEAP, 1);
    uint64_t made = reader.made, gone = reader.gone;
    errno = 5;
    for (unsigned i = 0; i < 3; i++) {
        assert_true(object_is_due(100, AGENT_WANTS_HEAP));
        object_made(object, 100);
    }
    reader_drain(&reader);
    assert_int_equal(reader.made, made + 3);
    assert_int_equal(reader.gone, gone + 2);
    assert_int_equal(reader.twice, 0);
    assert_true(object_gone(object));
    assert_false(object_gone(object));
    reader_drain(&reader);
    assert_int_equal(reader.live, 0);
    assert_int_equal(errno, 5);
}

/* While the thread runs the agent's own code, nothing is sampled, but frees are reported. */
static void test_inside(void **state)
{
    (void)state;
    static char object[100], other[100];
    reader_start(&reader, AGENT_WANTS_HEAP, 1);
    object_made(object, 100);
    this_thread.is_inside = 1;
    object_made(other, 100);
    assert_true(object_gone(object));
    assert_false(object_gone(other));
    this_thread.is_inside = 0;
    uint64_t unknown = reader.unknown;
    reader_drain(&reader);
    assert_int_equal(reader.unknown, unknown);
    assert_int_equal(reader.live, 0);
}

/* Dropped records: their objects do not count as live. */
static void test_full_ring(void **state)
{
    (void)state;
    static char objects[2000][64];
    reader_start(&reader, AGENT_WANTS_HEAP, 1);
    uint64_t lost = reader.header->made_lost, made = reader.made, gone = reader.gone;
    for (unsigned i = 0; i < 2000; i++)
        object_made(objects[i], 64);
    lost = reader.header->made_lost - lost;
    assert_in_range(lost, 1, 1999);
    assert_int_equal(reader.header->live, 2000 - lost);
    for (unsigned i = 0; i < 2000; i++)
        assert_true(object_gone(objects[i]) == (i < 2000 - lost));
    reader_drain(&reader);
    assert_int_equal(reader.made - made, 2000 - lost);
    assert_int_equal(reader.gone - gone, 2000 - lost);
    assert_int_equal(reader.live, 0);
}

static int set_up(void **state)
{
    (void)state;
    const struct segment_start start = {.rate = AGENT_RATE_DEFAULT};
    if (!segment_open(&start) || !reader_open(&reader, getpid()))
        return -1;
    /* Use the writers' mapping: ThreadSanitizer tracks memory by its address. */
    munmap(reader.header, AGENT_HEADER_BYTES + AGENT_RING_BYTES);
    reader.header = process->header;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_free_is_told),
        cmocka_unit_test(test_new_epochs),
        cmocka_unit_test(test_objects_of_the_epoch_before),
        cmocka_unit_test(test_nothing_while_idle),
        cmocka_unit_test(test_same_address_again),
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_full_ring),
    };
    return cmocka_run_group_tests_name("objects", tests, set_up, NULL);
}
