#include "unit.h"
#include "count/timeline.h"

/* A period of 10 ns. */
#define PERIOD_NS 10

enum { RUNNING, RUNNABLE, ASLEEP };

static int set_up(void **state)
{
    struct timeline *timeline = calloc(1, sizeof *timeline);
    *state = timeline;
    if (!timeline)
        return -1;
    timeline_want(timeline, PERIOD_NS, 100, false);
    return 0;
}

static int tear_down(void **state)
{
    timeline_free(*state);
    free(*state);
    return 0;
}

/* Books time from the cursor on. */
static void book(struct timeline *timeline, struct timeline_cursor *cursor, uint64_t running_ns,
                 uint64_t runnable_ns, uint64_t asleep_ns)
{
    const uint64_t booked_ns[] = {running_ns, runnable_ns, asleep_ns};
    timeline_book(timeline, cursor, 7, cursor->until_ns ? cursor->until_ns : 1000, booked_ns);
}

static void assert_run(const struct timeline *timeline, size_t number, uint32_t sample,
                       uint64_t time_ns)
{
    assert_true(number < timeline->run_count);
    assert_false(timeline->runs[number].is_owed);
    assert_int_equal(timeline->runs[number].sample, sample);
    assert_int_equal(timeline->runs[number].time_ns, time_ns);
}

static void test_equal_samples_are_one_run(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor cursor = {0};
    for (int i = 0; i < 5; i++) {
        book(timeline, &cursor, 0, 0, 12);
        timeline_give(timeline, &cursor, 3, ASLEEP, 40);
    }
    book(timeline, &cursor, 11, 0, 0);
    timeline_give(timeline, &cursor, 3, RUNNING, 41);
    book(timeline, &cursor, 0, 0, 13);
    timeline_give(timeline, &cursor, 4, ASLEEP, 40);
    assert_int_equal(timeline->run_count, 3);
    assert_run(timeline, 0, 40, 60);
    assert_run(timeline, 1, 41, 11);
    assert_run(timeline, 2, 40, 13);
    assert_int_equal(timeline->thread_count, 1);
    assert_int_equal(timeline->threads[0].tid, 7);
    assert_int_equal(timeline->threads[0].name, 4);
    assert_int_equal(timeline->threads[0].begin_ns, 1000);
}

static void test_threads_have_runs_of_their_own(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor cursors[2] = {0};
    for (int i = 0; i < 3; i++) {
        for (uint32_t j = 0; j < 2; j++) {
            book(timeline, &cursors[j], 0, 0, 10);
            timeline_give(timeline, &cursors[j], 0, ASLEEP, 5 + j);
        }
    }
    assert_int_equal(timeline->run_count, 2);
    for (uint32_t j = 0; j < 2; j++) {
        assert_run(timeline, j, 5 + j, 30);
        assert_int_equal(timeline->runs[j].thread, j);
    }
}

/* The thread ran in each interval, but only the last observation found it running. */
static void test_what_is_owed_has_its_place(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor cursor = {0};
    book(timeline, &cursor, 15, 0, 5);
    timeline_give(timeline, &cursor, 0, ASLEEP, 1);
    book(timeline, &cursor, 15, 0, 5);
    timeline_give(timeline, &cursor, 0, ASLEEP, 2);
    assert_int_equal(timeline->run_count, 4);
    assert_true(timeline->runs[0].is_owed);
    assert_true(timeline->runs[2].is_owed);
    book(timeline, &cursor, 7, 0, 0);
    timeline_give(timeline, &cursor, 0, RUNNING, 9);
    assert_int_equal(timeline->run_count, 5);
    assert_run(timeline, 0, 9, 15);
    assert_run(timeline, 1, 1, 5);
    assert_run(timeline, 2, 9, 15);
    assert_run(timeline, 3, 2, 5);
    assert_run(timeline, 4, 9, 7);
}

/* Less than a tick in another account makes no run of its own: a sleeper that wakes briefly stays
 * one run. */
static void test_slivers_wait(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor cursor = {0};
    for (int i = 0; i < 9; i++) {
        book(timeline, &cursor, 1, 0, 9);
        timeline_give(timeline, &cursor, 0, ASLEEP, 1);
    }
    assert_int_equal(timeline->run_count, 1);
    assert_run(timeline, 0, 1, 81);
    timeline_give(timeline, &cursor, 0, RUNNING, 2);
    assert_int_equal(timeline->run_count, 2);
    assert_run(timeline, 1, 2, 9);
}

/* A random walk: each sample's runs add up to the time that it got, however long the time was owed.
 */
static void test_sums_hold(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor cursor = {0};
    uint64_t owed_ns[TIMELINE_ACCOUNTS] = {0}, given_ns[8] = {0}, held_ns[8] = {0};
    uint64_t all_ns = 0;
    timeline->runs_max = 100000;
    srand(1);
    for (int i = 0; i < 5000; i++) {
        uint64_t booked_ns[TIMELINE_ACCOUNTS];
        unsigned account = (unsigned)rand() % TIMELINE_ACCOUNTS;
        uint32_t sample = (uint32_t)rand() % 8;
        for (unsigned j = 0; j < TIMELINE_ACCOUNTS; j++) {
            booked_ns[j] = (uint64_t)rand() % 3 ? 0 : (uint64_t)rand() % 25;
            owed_ns[j] += booked_ns[j];
            all_ns += booked_ns[j];
        }
        book(timeline, &cursor, booked_ns[0], booked_ns[1], booked_ns[2]);
        if (rand() % 4) {
            timeline_give(timeline, &cursor, 0, account, sample);
            given_ns[sample] += owed_ns[account];
            owed_ns[account] = 0;
        }
    }
    for (unsigned j = 0; j < TIMELINE_ACCOUNTS; j++) {
        timeline_give(timeline, &cursor, 0, j, j);
        given_ns[j] += owed_ns[j];
    }
    for (size_t i = 0; i < timeline->run_count; i++) {
        assert_false(timeline->runs[i].is_owed);
        held_ns[timeline->runs[i].sample] += timeline->runs[i].time_ns;
    }
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(held_ns[i], given_ns[i]);
    assert_int_equal(cursor.until_ns, 1000 + all_ns);
    assert_int_equal(timeline->lost_ns, 0);
}

static void test_time_that_is_not_booked_is_a_gap(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor cursor = {0};
    const uint64_t booked_ns[] = {0, 0, 20};
    book(timeline, &cursor, 0, 0, 20);
    timeline_give(timeline, &cursor, 0, ASLEEP, 1);
    timeline_book(timeline, &cursor, 7, 1100, booked_ns);
    timeline_give(timeline, &cursor, 0, ASLEEP, 1);
    assert_int_equal(timeline->run_count, 3);
    assert_run(timeline, 0, 1, 20);
    assert_run(timeline, 1, TIMELINE_NO_SAMPLE, 80);
    assert_run(timeline, 2, 1, 20);
}

static void test_what_is_never_given_is_a_gap(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor cursor = {0};
    book(timeline, &cursor, 15, 0, 20);
    timeline_give(timeline, &cursor, 0, ASLEEP, 1);
    book(timeline, &cursor, 5, 0, 0);
    timeline_drop_owed(timeline, &cursor);
    assert_int_equal(timeline->run_count, 3);
    assert_run(timeline, 0, TIMELINE_NO_SAMPLE, 15);
    assert_run(timeline, 1, 1, 20);
    assert_run(timeline, 2, TIMELINE_NO_SAMPLE, 5);
}

static void test_it_ends_at_its_limit(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor first = {0}, second = {0};
    timeline->runs_max = 3;
    book(timeline, &first, 20, 0, 10);
    timeline_give(timeline, &first, 0, ASLEEP, 1);
    book(timeline, &second, 0, 0, 10);
    timeline_give(timeline, &second, 0, ASLEEP, 1);
    assert_int_equal(timeline->run_count, 3);
    assert_false(timeline->is_full);
    book(timeline, &first, 0, 4, 0);
    timeline_give(timeline, &first, 0, RUNNABLE, 2);
    assert_true(timeline->is_full);
    /* Runs that exist still get their sample; time that would extend a run is lost, too. */
    book(timeline, &first, 5, 0, 0);
    timeline_give(timeline, &first, 0, RUNNING, 3);
    book(timeline, &second, 0, 0, 10);
    timeline_give(timeline, &second, 0, ASLEEP, 1);
    assert_int_equal(timeline->run_count, 3);
    assert_run(timeline, 0, 3, 20);
    assert_run(timeline, 1, 1, 10);
    assert_run(timeline, 2, 1, 10);
    assert_int_equal(timeline->lost_ns, 19);
    assert_int_equal(timeline->threads[0].lost_ns, 9);
    assert_int_equal(timeline->threads[1].lost_ns, 10);
}

static void test_none_begins_where_it_is_full(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor first = {0}, second = {0};
    timeline->runs_max = 1;
    book(timeline, &first, 20, 0, 10);
    timeline_give(timeline, &first, 0, RUNNING, 1);
    timeline_give(timeline, &first, 0, ASLEEP, 2);
    assert_true(timeline->is_full);
    assert_int_equal(timeline->lost_ns, 20);
    book(timeline, &second, 3, 2, 10);
    timeline_give(timeline, &second, 0, RUNNING, 1);
    assert_int_equal(timeline->thread_count, 1);
    assert_int_equal(timeline->lost_ns, 35);
}

static void test_nothing_is_kept_unless_wanted(void **state)
{
    (void)state;
    struct timeline timeline = {0};
    struct timeline_cursor cursor = {0};
    book(&timeline, &cursor, 0, 0, 10);
    timeline_give(&timeline, &cursor, 0, ASLEEP, 1);
    timeline_drop_owed(&timeline, &cursor);
    assert_null(timeline.runs);
    assert_null(timeline.threads);
}

/* The end of a run: the sum of its thread's runs so far. */
static uint64_t end_of(const struct timeline *timeline, size_t number)
{
    uint64_t end_ns = timeline->threads[timeline->runs[number].thread].begin_ns;
    for (size_t i = 0; i <= number; i++) {
        if (timeline->runs[i].thread == timeline->runs[number].thread)
            end_ns += timeline->runs[i].time_ns;
    }
    return end_ns;
}

static void test_the_past_can_be_forgotten(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor busy = {0}, idle = {0};
    for (uint32_t i = 0; i < 3; i++) {
        book(timeline, &busy, 0, 0, 20);
        timeline_give(timeline, &busy, 0, ASLEEP, i);
        book(timeline, &idle, 0, 0, 20);
        timeline_give(timeline, &idle, 0, ASLEEP, 7);
    }
    assert_int_equal(timeline_forget(timeline, 1030), 0);
    assert_int_equal(timeline->run_count, 3);
    assert_run(timeline, 0, 7, 30);
    assert_run(timeline, 1, 1, 10);
    assert_run(timeline, 2, 2, 20);
    assert_int_equal(timeline->threads[0].begin_ns, 1030);
    assert_int_equal(timeline->threads[1].begin_ns, 1030);
    /* The timelines continue. */
    book(timeline, &busy, 0, 0, 5);
    timeline_give(timeline, &busy, 0, ASLEEP, 2);
    book(timeline, &idle, 0, 0, 5);
    timeline_give(timeline, &idle, 0, ASLEEP, 7);
    assert_int_equal(timeline->run_count, 3);
    assert_int_equal(end_of(timeline, 0), 1065);
    assert_int_equal(end_of(timeline, 2), 1065);
    /* Forgets everything. */
    assert_int_equal(timeline_forget(timeline, 2000), 0);
    assert_int_equal(timeline->run_count, 0);
    book(timeline, &busy, 0, 0, 5);
    timeline_give(timeline, &busy, 0, ASLEEP, 2);
    assert_int_equal(timeline->threads[0].begin_ns, 1065);
    assert_run(timeline, 0, 2, 5);
}

static void test_rows_of_threads_are_used_again(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor first = {0}, second = {0}, third = {0};
    book(timeline, &first, 0, 0, 20);
    timeline_give(timeline, &first, 0, ASLEEP, 1);
    timeline_end(timeline, &first);
    book(timeline, &second, 0, 0, 40);
    timeline_give(timeline, &second, 0, ASLEEP, 2);
    assert_int_equal(timeline_forget(timeline, 1010), 0);
    assert_false(timeline->threads[0].is_unused);
    assert_int_equal(timeline_forget(timeline, 1020), 0);
    assert_true(timeline->threads[0].is_unused);
    book(timeline, &third, 0, 0, 10);
    timeline_give(timeline, &third, 0, ASLEEP, 3);
    assert_int_equal(timeline->thread_count, 2);
    assert_int_equal(timeline->runs[1].thread, 0);
    /* A thread that comes back does not use the row that another thread has got. */
    book(timeline, &first, 0, 0, 10);
    timeline_give(timeline, &first, 0, ASLEEP, 4);
    assert_int_equal(timeline->thread_count, 3);
    assert_int_equal(timeline->runs[2].thread, 2);
    assert_run(timeline, 1, 3, 10);
}

/* A thread's runs, in which successive runs of one sample are joined, as are successive runs
 * without a sample. */
static size_t runs_of(const struct timeline *timeline, uint32_t thread,
                      struct timeline_run ret_runs[64])
{
    size_t count = 0;
    for (size_t i = 0; i < timeline->run_count; i++) {
        struct timeline_run run = timeline->runs[i];
        if (run.thread != thread)
            continue;
        if (run.is_owed)
            run.sample = 0;
        struct timeline_run *last = count ? &ret_runs[count - 1] : NULL;
        if (last && last->sample == run.sample && last->is_owed == run.is_owed) {
            last->time_ns += run.time_ns;
        } else {
            assert_true(count < 64);
            ret_runs[count++] = run;
        }
    }
    return count;
}

/* A random walk of three threads in a ring that is too small, compared with a timeline that keeps
 * everything: the ring has its last part. */
static void test_a_ring_keeps_the_last_part(void **state)
{
    (void)state;
    struct timeline ring = {0}, all = {0};
    struct timeline_cursor cursors[2][3] = {{{0}}};
    struct timeline_run runs[2][64];
    timeline_want(&ring, PERIOD_NS, 64, true);
    timeline_want(&all, PERIOD_NS, 1000000, false);
    ring.start_ns = 1000;
    srand(2);
    for (int i = 0; i < 20000; i++) {
        unsigned thread = (unsigned)rand() % 3, account = (unsigned)rand() % TIMELINE_ACCOUNTS;
        uint32_t sample = (uint32_t)rand() % 5;
        uint64_t booked_ns[TIMELINE_ACCOUNTS];
        bool is_given = rand() % 4;
        if (cursors[0][thread].until_ns > cursors[0][(thread + 1) % 3].until_ns + 200)
            continue;
        for (unsigned j = 0; j < TIMELINE_ACCOUNTS; j++)
            booked_ns[j] = (uint64_t)rand() % 3 ? 0 : (uint64_t)rand() % 25;
        for (unsigned k = 0; k < 2; k++) {
            struct timeline *timeline = k ? &all : &ring;
            book(timeline, &cursors[k][thread], booked_ns[0], booked_ns[1], booked_ns[2]);
            if (is_given)
                timeline_give(timeline, &cursors[k][thread], 0, account, sample);
        }
        assert_true(ring.run_count <= 64);
    }
    assert_true(ring.run_count > 8);
    assert_int_equal(ring.lost_ns, 0);
    assert_int_equal(ring.thread_count, 3);
    assert_true(ring.forgotten_ns > 1000);
    /* The thread that is behind the others has runs from the time that is already forgotten. */
    assert_int_equal(timeline_forget(&all, ring.forgotten_ns), 0);
    assert_int_equal(timeline_forget(&ring, ring.forgotten_ns), 0);
    for (uint32_t i = 0; i < 3; i++) {
        size_t count = runs_of(&ring, i, runs[0]);
        assert_int_equal(runs_of(&all, i, runs[1]), count);
        assert_memory_equal(runs[0], runs[1], count * sizeof *runs[0]);
        assert_int_equal(ring.threads[i].begin_ns, all.threads[i].begin_ns);
    }
    timeline_free(&ring);
    timeline_free(&all);
}

static void test_samples_get_other_numbers(void **state)
{
    struct timeline *timeline = *state;
    struct timeline_cursor cursor = {0};
    struct renumber samples;
    const uint64_t booked_ns[] = {0, 0, 20};
    book(timeline, &cursor, 0, 0, 20);
    timeline_give(timeline, &cursor, 0, ASLEEP, 4);
    timeline_book(timeline, &cursor, 7, 1100, booked_ns);
    timeline_give(timeline, &cursor, 0, ASLEEP, 2);
    book(timeline, &cursor, 15, 0, 5);
    timeline_give(timeline, &cursor, 0, ASLEEP, 2);
    assert_int_equal(renumber_init(&samples, 5), 0);
    timeline_keep_samples(timeline, &samples);
    renumber_assign(&samples);
    assert_int_equal(renumber_kept(&samples), 2);
    timeline_renumber_samples(timeline, &samples);
    assert_run(timeline, 0, 1, 20);
    assert_run(timeline, 1, TIMELINE_NO_SAMPLE, 80);
    assert_run(timeline, 2, 0, 20);
    assert_true(timeline->runs[3].is_owed);
    timeline_give(timeline, &cursor, 0, RUNNING, 3);
    assert_run(timeline, 3, 3, 15);
    renumber_free(&samples);
}

static void test_a_copy_is_apart(void **state)
{
    struct timeline *timeline = *state;
    struct timeline copy = {0};
    struct timeline_cursor cursor = {0};
    for (int i = 0; i < 2; i++) {
        book(timeline, &cursor, 0, 0, 20);
        timeline_give(timeline, &cursor, 0, ASLEEP, 4 + (uint32_t)i);
        assert_int_equal(timeline_copy(timeline, &copy), 0);
        assert_int_equal(copy.run_count, timeline->run_count);
        assert_run(&copy, 0, 4, 20);
        assert_int_equal(timeline_forget(&copy, 1010), 0);
        assert_run(&copy, 0, 4, 10);
        assert_run(timeline, 0, 4, 20);
        assert_int_equal(timeline->threads[0].begin_ns, 1000);
    }
    timeline_free(&copy);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_equal_samples_are_one_run),
        TEST(test_threads_have_runs_of_their_own),
        TEST(test_what_is_owed_has_its_place),
        TEST(test_slivers_wait),
        TEST(test_sums_hold),
        TEST(test_time_that_is_not_booked_is_a_gap),
        TEST(test_what_is_never_given_is_a_gap),
        TEST(test_it_ends_at_its_limit),
        TEST(test_none_begins_where_it_is_full),
        TEST(test_the_past_can_be_forgotten),
        TEST(test_rows_of_threads_are_used_again),
        TEST(test_a_ring_keeps_the_last_part),
        TEST(test_samples_get_other_numbers),
        TEST(test_a_copy_is_apart),
        cmocka_unit_test(test_nothing_is_kept_unless_wanted),
    };
    return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
