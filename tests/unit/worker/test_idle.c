/* Threads that never moved are dropped, with everything that was counted for them. */
#include "unit.h"
#include "worker/idle.h"
#include "worker/elapsed_ticks.h"

static struct results results;

static int set_up(void **state)
{
    (void)state;
    int err = results_init(&results);
    return err ? err : elapsed_ticks_begin(&results, 0, getpid(), 0, 10);
}

static int tear_down(void **state)
{
    (void)state;
    results_free(&results);
    return 0;
}

static void count(pid_t tid, enum stack_cut cut, uint64_t ticks)
{
    uint64_t address = 0x1000;
    const struct stack stack = {.addresses = &address, .depth = 1, .cut = cut};
    const struct sample_labels labels = {.tid = (uint32_t)tid, .syscall_number = -1};
    uint32_t sample;
    assert_int_equal(
        stack_table_add(&results.stacks, 0, &stack, &labels, ticks, ticks * 10, &sample), 0);
    results.stacks.samples[sample].waited_ticks = (double)ticks;
    stack_table_count_sleeps(&results.stacks, sample, ticks);
    results.counts.samples += ticks;
    results.counts.samples_cut += cut != STACK_WHOLE ? ticks : 0;
    results.counts.samples_not_captured += cut == STACK_CUT_NOT_CAPTURED ? ticks : 0;
    results.counts.samples_not_kept += cut == STACK_CUT_NOT_KEPT ? ticks : 0;
}

/* A goroutine's id is not a thread's. */
static void count_goroutine(uint32_t id, uint64_t ticks)
{
    uint64_t address = 0x1000;
    const struct stack stack = {.addresses = &address, .depth = 1};
    const struct sample_labels labels = {.tid = id, .syscall_number = -1, .task = TASK_GOROUTINE};
    uint32_t sample;
    assert_int_equal(
        stack_table_add(&results.stacks, 0, &stack, &labels, ticks, ticks * 10, &sample), 0);
    results.counts.samples += ticks;
}

static void test_goroutines_have_other_ids(void **state)
{
    (void)state;
    count(3, STACK_WHOLE, 100);
    count_goroutine(3, 7);
    assert_int_equal(idle_note(&results, 3), 0);
    idle_sort(&results);
    idle_drop(&results, true);
    assert_int_equal(results.counts.samples, 7);
    assert_int_equal(results.counts.idle_ns, 1000);
    assert_int_equal(results.stacks.samples[0].count, 0);
    assert_int_equal(results.stacks.samples[1].count, 7);
}

static void test_they_take_their_counts_with_them(void **state)
{
    (void)state;
    for (pid_t tid = 30; tid > 0; tid--) {
        count(tid, STACK_WHOLE, 100);
        count(tid, STACK_CUT_UNREADABLE, 10);
        count(tid, STACK_CUT_NOT_CAPTURED, 1);
        count(tid, STACK_CUT_NOT_KEPT, 1000);
        if (tid % 3 == 0)
            assert_int_equal(idle_note(&results, tid), 0);
    }
    idle_sort(&results);
    idle_drop(&results, true);
    assert_int_equal(results.idle_tid_count, 10);
    assert_int_equal(results.counts.samples, 20 * 1111);
    assert_int_equal(results.counts.samples_cut, 20 * 1011);
    assert_int_equal(results.counts.samples_not_captured, 20);
    assert_int_equal(results.counts.samples_not_kept, 20 * 1000);
    assert_int_equal(results.counts.idle_ns, 10 * 11110);
    assert_int_equal(results.elapsed[0].idle_ticks, 10 * 1111);
    for (size_t i = 0; i < results.stacks.sample_count; i++) {
        const struct counted_sample *sample = &results.stacks.samples[i];
        assert_true(sample->labels.tid != 0);
        assert_int_equal(sample->labels.tid % 3 == 0, sample->count == 0);
        assert_int_equal(sample->count == 0, sample->time_ns == 0);
        assert_true((sample->waited_ticks > 0) == (sample->count > 0));
        assert_int_equal(sample->sleeps, sample->count);
    }
}

static void test_ids_go_if_nobody_wants_them(void **state)
{
    (void)state;
    count(7, STACK_WHOLE, 3);
    idle_drop(&results, false);
    assert_int_equal(results.stacks.samples[0].labels.tid, 0);
    assert_int_equal(results.stacks.samples[0].count, 3);
    assert_int_equal(results.counts.idle_ns, 0);
}

static void test_their_timelines_are_left_out(void **state)
{
    (void)state;
    struct timeline_cursor cursors[2] = {0};
    const uint64_t booked_ns[TIMELINE_ACCOUNTS] = {0, 0, 100};
    timeline_want(&results.timeline, 10, 1, false);
    for (unsigned i = 0; i < 2; i++) {
        timeline_book(&results.timeline, &cursors[i], 5 + i, 0, booked_ns);
        timeline_give(&results.timeline, &cursors[i], 0, 2, i);
    }
    assert_int_equal(results.timeline.lost_ns, 100); /* there is space for one run only */
    assert_int_equal(idle_note(&results, 6), 0);
    idle_sort(&results);
    idle_drop(&results, true);
    assert_false(results.timeline.threads[0].is_left_out);
    assert_true(results.timeline.threads[1].is_left_out);
    assert_int_equal(results.timeline.lost_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_they_take_their_counts_with_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_goroutines_have_other_ids, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ids_go_if_nobody_wants_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_their_timelines_are_left_out, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("idle", tests, NULL, NULL);
}
