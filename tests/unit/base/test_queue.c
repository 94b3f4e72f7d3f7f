/* The queue between two threads: every item that is put is taken once, in order. */
#include "unit.h"
#include "base/queue.h"

#include <pthread.h>
#include <sched.h>

#define STRESS_ITEMS 100000u

struct item {
    uint64_t number, check;
    char padding[40];
};

static struct item item_of(uint64_t number)
{
    return (struct item){.number = number, .check = ~number};
}

static void put(struct queue *queue, uint64_t number)
{
    const struct item item = item_of(number);
    assert_int_equal(queue_put(queue, &item), 0);
}

static void assert_taken(struct queue *queue, uint64_t number)
{
    struct item item = {0};
    assert_true(queue_take(queue, &item));
    assert_int_equal(item.number, number);
    assert_true(item.check == ~number);
}

static void test_an_empty_one_has_nothing(void **state)
{
    (void)state;
    struct queue *queue;
    struct item item;
    assert_int_equal(queue_new(sizeof item, &queue), 0);
    assert_true(queue_is_empty(queue));
    assert_false(queue_take(queue, &item));
    put(queue, 1);
    assert_false(queue_is_empty(queue));
    assert_taken(queue, 1);
    assert_true(queue_is_empty(queue));
    assert_false(queue_take(queue, &item));
    queue_free(queue);
    queue_free(NULL);
}

/* Crosses block boundaries with various numbers of items in the queue. */
static void test_order_is_kept_whatever_is_in_it(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 255, 256, 257, 511, 512, 513, 1000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct queue *queue;
        uint64_t next_put = 0, next_taken = 0;
        assert_int_equal(queue_new(sizeof(struct item), &queue), 0);
        while (next_put < lengths[i])
            put(queue, next_put++);
        while (next_taken < 3000) {
            assert_taken(queue, next_taken++);
            put(queue, next_put++);
        }
        while (next_taken < next_put)
            assert_taken(queue, next_taken++);
        assert_true(queue_is_empty(queue));
        queue_free(queue);
    }
}

static void test_what_is_left_is_freed(void **state)
{
    (void)state;
    struct queue *queue;
    assert_int_equal(queue_new(sizeof(struct item), &queue), 0);
    for (uint64_t i = 0; i < 1000; i++)
        put(queue, i);
    assert_taken(queue, 0);
    queue_free(queue);
}

static void *put_all(void *context)
{
    for (uint64_t i = 0; i < STRESS_ITEMS; i++) {
        const struct item item = item_of(i);
        if (queue_put(context, &item))
            return context;
        if (i % 1000 == 0)
            sched_yield();
    }
    return NULL;
}

static void test_two_threads(void **state)
{
    (void)state;
    struct queue *queue;
    pthread_t thread;
    void *result;
    assert_int_equal(queue_new(sizeof(struct item), &queue), 0);
    assert_int_equal(pthread_create(&thread, NULL, put_all, queue), 0);
    for (uint64_t i = 0; i < STRESS_ITEMS;) {
        struct item item;
        if (!queue_take(queue, &item)) {
            sched_yield();
            continue;
        }
        assert_int_equal(item.number, i);
        assert_true(item.check == ~i);
        i++;
    }
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    assert_true(queue_is_empty(queue));
    queue_free(queue);
}

/* If the queue is empty for the thread that puts, all items have been taken. */
struct taken {
    struct queue *queue;
    uint64_t sum; /* not atomic: the queue orders it */
};

static void *take_some(void *context)
{
    struct taken *taken = context;
    for (unsigned i = 0; i < 1000;) {
        struct item item;
        if (!queue_take(taken->queue, &item)) {
            sched_yield();
            continue;
        }
        i++;
        taken->sum += item.number;
    }
    return NULL;
}

static void test_empty_is_exact_for_the_thread_that_puts(void **state)
{
    (void)state;
    struct taken taken = {0};
    pthread_t thread;
    assert_int_equal(queue_new(sizeof(struct item), &taken.queue), 0);
    assert_int_equal(pthread_create(&thread, NULL, take_some, &taken), 0);
    for (uint64_t i = 0; i < 1000; i++) {
        put(taken.queue, i);
        while (!queue_is_empty(taken.queue))
            sched_yield();
    }
    pthread_join(thread, NULL);
    assert_int_equal(taken.sum, 999 * 500);
    queue_free(taken.queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_one_has_nothing),
        cmocka_unit_test(test_order_is_kept_whatever_is_in_it),
        cmocka_unit_test(test_what_is_left_is_freed),
        cmocka_unit_test(test_two_threads),
        cmocka_unit_test(test_empty_is_exact_for_the_thread_that_puts),
    };
    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
