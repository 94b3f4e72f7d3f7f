/* A ring ends a wait, whether the wait has begun or not. */
#include "unit.h"
#include "base/bell.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>

static void test_a_ring_before_the_wait(void **state)
{
    (void)state;
    struct bell bell = {0};
    uint32_t heard = bell_heard(&bell);
    errno = EPERM;
    bell_ring(&bell);
    assert_int_equal(errno, EPERM);
    bell_wait(&bell, heard, UINT64_MAX);
    assert_int_equal(bell_heard(&bell), heard + 1);
}

static void test_a_wait_has_an_end(void **state)
{
    (void)state;
    struct bell bell = {0};
    uint64_t until_ns = monotonic_ns() + 20000000;
    bell_wait(&bell, 0, 1); /* in the past */
    while (monotonic_ns() < until_ns)
        bell_wait(&bell, 0, until_ns);
}

struct pair {
    struct bell to, back;
};

#define TURNS 5000

static void *answer(void *context)
{
    struct pair *pair = context;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        while (bell_heard(&pair->to) == turn)
            bell_wait(&pair->to, turn, UINT64_MAX);
        bell_ring(&pair->back);
    }
    return NULL;
}

static void test_two_threads_take_turns(void **state)
{
    (void)state;
    struct pair pair = {0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, answer, &pair), 0);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        bell_ring(&pair.to);
        while (bell_heard(&pair.back) == turn)
            bell_wait(&pair.back, turn, UINT64_MAX);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Rings for many messages, an old one or an urgent one, but not for none. */
static void test_a_lazy_bell(void **state)
{
    (void)state;
    struct bell bell = {0};
    struct lazy_bell lazy = {.bell = &bell};
    uint64_t now_ns = monotonic_ns();
    lazy_bell_ring(&lazy);
    assert_false(lazy_bell_ring_if_due(&lazy, now_ns));
    assert_int_equal(bell_heard(&bell), 0);
    lazy.unrung = 1;
    lazy_bell_ring(&lazy);
    assert_int_equal(bell_heard(&bell), 1);
    assert_int_equal(lazy.unrung, 0);
    assert_true(lazy.rung_ns >= now_ns);
    lazy.unrung = 1;
    assert_false(lazy_bell_ring_if_due(&lazy, lazy.rung_ns + 1));
    assert_true(lazy_bell_ring_if_due(&lazy, lazy.rung_ns + 1000000000));
    lazy.unrung = 1000;
    assert_true(lazy_bell_ring_if_due(&lazy, lazy.rung_ns));
    lazy.unrung = 1;
    lazy.is_hurried = true;
    assert_true(lazy_bell_ring_if_due(&lazy, lazy.rung_ns));
    assert_false(lazy.is_hurried);
    assert_int_equal(bell_heard(&bell), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ring_before_the_wait),
        cmocka_unit_test(test_a_wait_has_an_end),
        cmocka_unit_test(test_two_threads_take_turns),
        cmocka_unit_test(test_a_lazy_bell),
    };
    return cmocka_run_group_tests_name("bell", tests, NULL, NULL);
}
