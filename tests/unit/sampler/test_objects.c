/* Objects that a source in the program reports: when it is opened and polled, and what is passed
 * on. */
#include "fake/fake.h"

#include <errno.h>

#define PID 100

static struct fake_process *begin(void)
{
    struct fake_process *process = fake_process(PID);
    fake_thread(process, PID, FAKE_SLEEPS);
    fake->options.objects.kinds[OBJECT_ALLOCATION] = true;
    fake->options.objects.heap_rate = 1;
    fake_begin();
    fake_ticks(1);
    fake_forget_told();
    return process;
}

static void add_news(uint64_t key)
{
    fake->news[fake->news_count++] = (struct fake_news){
        .tid = PID,
        .has_snapshot = true,
        .news = {.kind = OBJECT_ALLOCATION, .change = OBJECT_MADE, .key = key, .weight = 1},
    };
}

static const struct object_counts *counts(void)
{
    return &fake->object_counts[OBJECT_ALLOCATION];
}

static void test_news_are_passed_on_in_order(void **state)
{
    (void)state;
    begin();
    for (uint64_t key = 1; key <= 3; key++)
        add_news(key);
    fake_ticks(1);
    for (uint64_t key = 1; key <= 3; key++) {
        const struct fake_told *told = fake_next(MESSAGE_OBJECT);
        assert_non_null(told);
        assert_int_equal(told->message.object.key, key);
        assert_int_equal(told->message.object.kind, OBJECT_ALLOCATION);
        assert_int_equal(told->message.object.process_id, PID);
        assert_int_equal(told->message.object.tid, PID);
        assert_int_equal(told->program, 0);
        assert_true(told->has_snapshot);
    }
    assert_int_equal(fake->agents_opened, 1);
}

static void test_without_snapshots_news_wait(void **state)
{
    (void)state;
    begin();
    fake_hoard(0);
    add_news(1);
    fake_ticks(3);
    assert_int_equal(fake_count_news(OBJECT_ALLOCATION, OBJECT_MADE), 0);
    fake_hoard_no_more();
    fake_ticks(1);
    assert_int_equal(fake_count_news(OBJECT_ALLOCATION, OBJECT_MADE), 1);
}

/* If more messages come than can wait until the next tick. */
static void test_fast_news_are_asked_for_between_ticks(void **state)
{
    (void)state;
    begin();
    fake_ticks(1);
    fake->agent.is_fast = true;
    fake_ticks(1);
    uint64_t ticks = fake->sampler.counts.ticks_taken;
    add_news(1);
    fake_step();
    assert_int_equal(fake->sampler.counts.ticks_taken, ticks);
    assert_int_equal(fake_count_news(OBJECT_ALLOCATION, OBJECT_MADE), 1);
}

/* The program may load it later. */
static void test_a_source_that_comes_later(void **state)
{
    (void)state;
    fake->agent_error = -ENOENT;
    begin();
    fake_ticks(20);
    assert_int_equal(fake->agents_opened, 0);
    fake->agent_error = 0;
    fake_ticks(5);
    assert_int_equal(fake->agents_opened, 1);
    add_news(1);
    fake_ticks(1);
    assert_int_equal(fake_count_news(OBJECT_ALLOCATION, OBJECT_MADE), 1);
}

static void test_a_source_is_sought_less_often_as_the_program_gets_older(void **state)
{
    (void)state;
    fake->agent_error = -ENOENT;
    begin();
    uint64_t until_ns = FAKE_START_NS + 10000000;
    for (unsigned sought_before = 0; until_ns < FAKE_START_NS + 640000000;) {
        while (fake->now_ns < until_ns)
            fake_ticks(1);
        assert_in_range(fake->agents_sought - sought_before, 1, 12);
        sought_before = fake->agents_sought;
        until_ns += until_ns - FAKE_START_NS; /* twice as old */
    }
}

static void test_a_refusal_is_said(void **state)
{
    (void)state;
    fake->agent_error = -EPROTO;
    begin();
    fake_ticks(20);
    fake->agent_error = 0;
    fake_ticks(20);
    assert_int_equal(fake->agents_opened, 0); /* it will not exist later either */
    fake_end();
    assert_int_equal(counts()->refusal, EPROTO);
    assert_false(counts()->has_source);
}

static void test_the_rest_is_told_when_the_program_ends(void **state)
{
    (void)state;
    struct fake_process *process = begin();
    add_news(1);
    process->programs++;
    fake_ticks(2);
    const struct fake_told *told = fake_next(MESSAGE_OBJECT);
    assert_int_equal(told->message.object.change, OBJECT_MADE);
    assert_int_equal(told->program, 0);
    assert_non_null(fake_next(MESSAGE_PROGRAM_ENDED));
    told = fake_next(MESSAGE_OBJECT);
    assert_int_equal(told->message.object.change, OBJECT_FORGOTTEN);
    assert_int_equal(fake->agents_closed, 1);
    assert_int_equal(fake->agents_opened, 2);
    add_news(2);
    fake_ticks(1);
    told = fake_next(MESSAGE_OBJECT);
    assert_int_equal(told->program, 1);
    fake_end();
    assert_int_equal(counts()->made_lost, 2 * 7); /* of both programs */
    assert_int_equal(fake->agents_closed, 2);
}

static void test_what_a_process_leaves(void **state)
{
    (void)state;
    struct fake_process *process = begin();
    process->threads[0]->doing = FAKE_GONE;
    while (fake_step()) {
    }
    assert_int_equal(fake_count_news(OBJECT_ALLOCATION, OBJECT_LEFT), 1);
    assert_int_equal(fake_count_news(OBJECT_ALLOCATION, OBJECT_FORGOTTEN), 0);
}

/* A recording without an end does not show what is gone. */
static void test_what_a_process_leaves_in_an_endless_recording(void **state)
{
    (void)state;
    fake->options.moment_every_ns = 1000 * (uint64_t)FAKE_PERIOD_NS;
    struct fake_process *process = begin();
    process->threads[0]->doing = FAKE_GONE;
    while (fake_step()) {
    }
    assert_int_equal(fake_count_news(OBJECT_ALLOCATION, OBJECT_LEFT), 0);
    assert_int_equal(fake_count_news(OBJECT_ALLOCATION, OBJECT_FORGOTTEN), 1);
}

/* If births are not known, nothing else reports the end of its threads. */
static void test_threads_of_a_process_that_ends_in_an_endless_recording(void **state)
{
    (void)state;
    fake->options.moment_every_ns = 1000 * (uint64_t)FAKE_PERIOD_NS;
    fake->options.objects.kinds[OBJECT_THREAD] = true;
    fake->births_error = -EPERM;
    struct fake_process *process = begin();
    process->threads[0]->doing = FAKE_GONE;
    while (fake_step()) {
    }
    assert_int_equal(fake_count_news(OBJECT_THREAD, OBJECT_FORGOTTEN), 1);
}

/* Data that can be read at any time is read for a copy, and reported before it. */
static void test_a_copy(void **state)
{
    (void)state;
    begin();
    unsigned refreshed = fake->agents_refreshed;
    atomic_store(&fake->sampler.progress.wants_copy, true);
    fake_ticks(2);
    assert_int_equal(fake->agents_refreshed, refreshed + 1);
    assert_non_null(fake_next(MESSAGE_COPY));
}

static void test_a_copy_waits_for_what_is_left(void **state)
{
    (void)state;
    begin();
    fake_hoard(0);
    add_news(1);
    atomic_store(&fake->sampler.progress.wants_copy, true);
    fake_ticks(3);
    assert_null(fake_next(MESSAGE_COPY));
    fake->told_next = 0;
    fake_forget_told();
    fake_hoard_no_more();
    fake_ticks(2);
    assert_non_null(fake_next(MESSAGE_OBJECT));
    assert_non_null(fake_next(MESSAGE_COPY));
}

static void test_no_tick_waits_for_the_rest(void **state)
{
    (void)state;
    struct fake_process *process = begin();
    fake_hoard(0);
    add_news(1);
    process->programs++;
    uint64_t begin_ns = fake->now_ns;
    fake_ticks(2);
    assert_true(fake->now_ns - begin_ns <= 3 * (uint64_t)FAKE_PERIOD_NS);
    fake_forget_told();
    fake_hoard_no_more();
    fake_ticks(2);
    assert_non_null(fake_next(MESSAGE_OBJECT)); /* before its program has ended */
    assert_non_null(fake_next(MESSAGE_PROGRAM_ENDED));
}

/* A program can report any number of frees. A copy waits for all of them. */
static void test_what_can_be_queued_is_bounded(void **state)
{
    (void)state;
    begin();
    fake->frees_left = 200000;
    fake->is_absent = true;
    atomic_store(&fake->sampler.progress.wants_copy, true);
    fake_ticks(20);
    assert_true(fake->frees_left > 100000);
    fake->is_absent = false;
    fake_ticks(20);
    assert_int_equal(fake->frees_left, 0);
    assert_non_null(fake_next(MESSAGE_COPY));
    assert_int_equal(fake_count_news(OBJECT_ALLOCATION, OBJECT_GONE), 0); /* all came before it */
}

static void test_without_time_only_objects_are_told(void **state)
{
    (void)state;
    fake->options.has_no_time = true;
    begin();
    add_news(1);
    fake_ticks(5);
    assert_int_equal(fake_find(PID)->looks, 0);
    assert_null(fake_next_of(PID));
    fake->told_next = 0;
    assert_int_equal(fake_count_news(OBJECT_ALLOCATION, OBJECT_MADE), 1);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_news_are_passed_on_in_order),
        IN_WORLD(test_without_snapshots_news_wait),
        IN_WORLD(test_fast_news_are_asked_for_between_ticks),
        IN_WORLD(test_a_source_that_comes_later),
        IN_WORLD(test_a_source_is_sought_less_often_as_the_program_gets_older),
        IN_WORLD(test_a_refusal_is_said),
        IN_WORLD(test_the_rest_is_told_when_the_program_ends),
        IN_WORLD(test_what_a_process_leaves),
        IN_WORLD(test_what_a_process_leaves_in_an_endless_recording),
        IN_WORLD(test_threads_of_a_process_that_ends_in_an_endless_recording),
        IN_WORLD(test_a_copy),
        IN_WORLD(test_a_copy_waits_for_what_is_left),
        IN_WORLD(test_no_tick_waits_for_the_rest),
        IN_WORLD(test_what_can_be_queued_is_bounded),
        IN_WORLD(test_without_time_only_objects_are_told),
    };
    return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
