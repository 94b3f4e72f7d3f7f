#include "unit.h"
#include "sampler/threads.h"

#define VISITS_MAX 64

struct visits {
    pid_t appeared[VISITS_MAX], vanished[VISITS_MAX];
    size_t appeared_count, vanished_count;
};

static void appeared(void *context, struct thread *thread)
{
    struct visits *visits = context;
    if (visits->appeared_count < VISITS_MAX)
        visits->appeared[visits->appeared_count] = thread->tid;
    visits->appeared_count++;
    assert_int_equal(thread->schedule.looked_tick, 0);
    thread->schedule.looked_tick = (uint64_t)thread->tid * 10;
}

static void vanished(void *context, struct thread *thread)
{
    struct visits *visits = context;
    assert_int_equal(thread->schedule.looked_tick, (uint64_t)thread->tid * 10);
    if (visits->vanished_count < VISITS_MAX)
        visits->vanished[visits->vanished_count] = thread->tid;
    visits->vanished_count++;
}

static struct visits update(struct threads *threads, const pid_t *tids, size_t count)
{
    struct visits visits = {0};
    assert_int_equal(threads_update(threads, tids, count, appeared, vanished, &visits), 0);
    assert_int_equal(threads->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(threads->items[i].tid, tids[i]);
        assert_int_equal(threads->items[i].schedule.looked_tick, tids[i] * 10);
    }
    return visits;
}

#define TIDS(...) (const pid_t[]){__VA_ARGS__}, sizeof(pid_t[]){__VA_ARGS__} / sizeof(pid_t)

static void assert_tids(const pid_t *got, size_t got_count, const pid_t *expected, size_t count)
{
    assert_int_equal(got_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(got[i], expected[i]);
}

#define ASSERT_APPEARED(visits, ...)                                                               \
    assert_tids((visits).appeared, (visits).appeared_count, TIDS(__VA_ARGS__))
#define ASSERT_VANISHED(visits, ...)                                                               \
    assert_tids((visits).vanished, (visits).vanished_count, TIDS(__VA_ARGS__))

static void test_first_threads_appear(void **state)
{
    (void)state;
    struct threads threads = {0};
    struct visits visits = update(&threads, TIDS(5, 7, 11));
    ASSERT_APPEARED(visits, 5, 7, 11);
    assert_int_equal(visits.vanished_count, 0);
    for (size_t i = 0; i < 3; i++)
        assert_true(threads.items[i].wants.stack_limit > 0);
    threads_free(&threads);
}

static void test_no_change_calls_and_copies_nothing(void **state)
{
    (void)state;
    struct threads threads = {0};
    update(&threads, TIDS(5, 7, 11));
    threads.items[1].number = 99;
    const struct thread *items = threads.items;
    struct visits visits = update(&threads, TIDS(5, 7, 11));
    assert_int_equal(visits.appeared_count, 0);
    assert_int_equal(visits.vanished_count, 0);
    assert_int_equal(threads.items[1].number, 99);
    assert_ptr_equal(threads.items, items);
    threads_free(&threads);
}

static void test_births_and_deaths_anywhere(void **state)
{
    (void)state;
    struct threads threads = {0};
    update(&threads, TIDS(10, 20, 30, 40));
    threads.items[1].number = 20;
    threads.items[3].number = 40;
    struct visits visits = update(&threads, TIDS(5, 20, 25, 40, 50));
    ASSERT_APPEARED(visits, 5, 25, 50);
    ASSERT_VANISHED(visits, 10, 30);
    assert_int_equal(threads.items[1].number, 20);
    assert_int_equal(threads.items[2].number, 0);
    assert_int_equal(threads.items[3].number, 40);
    visits = update(&threads, TIDS(20));
    assert_int_equal(visits.appeared_count, 0);
    ASSERT_VANISHED(visits, 5, 25, 40, 50);
    assert_int_equal(threads.items[0].number, 20);
    threads_free(&threads);
}

static void test_all_replaced_and_all_gone(void **state)
{
    (void)state;
    struct threads threads = {0};
    update(&threads, TIDS(10, 20));
    struct visits visits = update(&threads, TIDS(1, 2, 3));
    ASSERT_APPEARED(visits, 1, 2, 3);
    ASSERT_VANISHED(visits, 10, 20);
    visits = update(&threads, NULL, 0);
    assert_int_equal(visits.appeared_count, 0);
    ASSERT_VANISHED(visits, 1, 2, 3);
    visits = update(&threads, NULL, 0);
    assert_int_equal(visits.vanished_count, 0);
    visits = update(&threads, TIDS(2));
    ASSERT_APPEARED(visits, 2);
    threads_free(&threads);
}

static void test_many_threads(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static pid_t all[MANY], odd[MANY / 2];
    struct threads threads = {0};
    for (pid_t i = 0; i < MANY; i++)
        all[i] = i + 1;
    for (size_t i = 0; i < MANY / 2; i++)
        odd[i] = all[2 * i];
    struct visits visits = update(&threads, odd, MANY / 2);
    assert_int_equal(visits.appeared_count, MANY / 2);
    visits = update(&threads, all, MANY);
    assert_int_equal(visits.appeared_count, MANY / 2);
    assert_int_equal(visits.vanished_count, 0);
    visits = update(&threads, odd, MANY / 2);
    assert_int_equal(visits.appeared_count, 0);
    assert_int_equal(visits.vanished_count, MANY / 2);
    assert_int_equal(visits.vanished[0], 2);
    threads_free(&threads);
}

static void test_find(void **state)
{
    (void)state;
    struct threads threads = {0};
    assert_null(threads_find(&threads, 5));
    update(&threads, TIDS(5, 7, 11));
    assert_ptr_equal(threads_find(&threads, 5), &threads.items[0]);
    assert_ptr_equal(threads_find(&threads, 7), &threads.items[1]);
    assert_ptr_equal(threads_find(&threads, 11), &threads.items[2]);
    assert_null(threads_find(&threads, 1));
    assert_null(threads_find(&threads, 6));
    assert_null(threads_find(&threads, 12));
    threads_free(&threads);
}

static void test_place_goes_round(void **state)
{
    (void)state;
    struct threads threads = {0};
    assert_int_equal(threads_place_from(&threads, 5), 0);
    update(&threads, TIDS(5, 7, 11));
    assert_int_equal(threads_place_from(&threads, 0), 0);
    assert_int_equal(threads_place_from(&threads, 5), 0);
    assert_int_equal(threads_place_from(&threads, 6), 1);
    assert_int_equal(threads_place_from(&threads, 11), 2);
    assert_int_equal(threads_place_from(&threads, 12), 0);
    threads_free(&threads);
}

/* ---- Phases of a thread ---- */

static enum thread_phase after(enum thread_phase phase, const enum phase_event *events,
                               size_t count)
{
    struct thread thread = {.phase = phase};
    for (size_t i = 0; i < count; i++)
        thread_note(&thread, events[i]);
    return thread.phase;
}
#define AFTER(phase, ...)                                                                          \
    after(phase, (const enum phase_event[]){__VA_ARGS__},                                          \
          sizeof((const enum phase_event[]){__VA_ARGS__}) / sizeof(enum phase_event))

static void test_a_thread_is_looked_at_once_its_begin_is_read(void **state)
{
    (void)state;
    assert_int_equal(AFTER(PHASE_LISTED, EVENT_SLEPT_ON), PHASE_LISTED);
    assert_int_equal(AFTER(PHASE_LISTED, EVENT_STOP_WANTED), PHASE_LISTED);
    assert_int_equal(AFTER(PHASE_LISTED, EVENT_BEGIN_READ), PHASE_AWAKE);
    /* A begin that is read again changes nothing. */
    assert_int_equal(AFTER(PHASE_ASLEEP, EVENT_BEGIN_READ), PHASE_ASLEEP);
}

static void test_it_sleeps_until_it_moves(void **state)
{
    (void)state;
    assert_int_equal(AFTER(PHASE_AWAKE, EVENT_SLEPT_ON), PHASE_ASLEEP);
    assert_int_equal(AFTER(PHASE_ASLEEP, EVENT_SLEPT_ON), PHASE_ASLEEP);
    assert_int_equal(AFTER(PHASE_ASLEEP, EVENT_MOVED), PHASE_AWAKE);
}

static void test_a_stop_goes_to_its_end(void **state)
{
    (void)state;
    static const enum thread_phase from[] = {PHASE_AWAKE, PHASE_ASLEEP};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(AFTER(from[i], EVENT_STOP_WANTED), PHASE_TO_STOP);
        assert_int_equal(AFTER(from[i], EVENT_STOP_WANTED, EVENT_STOP_BEGUN), PHASE_STOPPING);
    }
    /* Other events meanwhile do not end the stop. */
    assert_int_equal(
        AFTER(PHASE_STOPPING, EVENT_MOVED, EVENT_SLEPT_ON, EVENT_STOP_WANTED, EVENT_NAME_UNWANTED),
        PHASE_STOPPING);
    assert_int_equal(AFTER(PHASE_TO_STOP, EVENT_MOVED, EVENT_SLEPT_ON), PHASE_TO_STOP);
    assert_int_equal(AFTER(PHASE_STOPPING, EVENT_STOP_OVER), PHASE_AWAKE);
    assert_int_equal(AFTER(PHASE_TO_STOP, EVENT_STOP_OVER), PHASE_AWAKE);
    /* A stop that never began can't be over. */
    assert_int_equal(AFTER(PHASE_ASLEEP, EVENT_STOP_BEGUN, EVENT_STOP_OVER), PHASE_ASLEEP);
}

static void test_an_unwanted_thread_is_left_alone_until_it_has_another_name(void **state)
{
    (void)state;
    static const enum thread_phase from[] = {PHASE_LISTED, PHASE_AWAKE, PHASE_ASLEEP,
                                             PHASE_TO_STOP};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(AFTER(from[i], EVENT_NAME_UNWANTED), PHASE_UNWANTED);
    for (enum phase_event event = 0; event < PHASE_EVENTS; event++) {
        enum thread_phase phase = event == EVENT_NAME_WANTED ? PHASE_AWAKE : PHASE_UNWANTED;
        assert_int_equal(AFTER(PHASE_UNWANTED, event), phase);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_threads_appear),
        cmocka_unit_test(test_no_change_calls_and_copies_nothing),
        cmocka_unit_test(test_births_and_deaths_anywhere),
        cmocka_unit_test(test_all_replaced_and_all_gone),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_place_goes_round),
        cmocka_unit_test(test_a_thread_is_looked_at_once_its_begin_is_read),
        cmocka_unit_test(test_it_sleeps_until_it_moves),
        cmocka_unit_test(test_a_stop_goes_to_its_end),
        cmocka_unit_test(test_an_unwanted_thread_is_left_alone_until_it_has_another_name),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
