/* Samples are set aside until their span is long enough. */
#include "unit.h"
#include "worker/elapsed_ticks.h"
#include "worker/spans.h"

static const struct span_options options = {"route", 100};
static const struct span_options none = {0};

struct world {
    struct results results;
    struct counted_thread thread; /* number 7 */
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    return !world || results_init(&world->results) ||
           elapsed_ticks_begin(&world->results, 0, getpid(), 1, 1000000);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    ledger_free(&world->thread.account.ledger);
    results_free(&world->results);
    free(world);
    return 0;
}

/* Observes the thread with a label of this identity, and counts it in a stack of one address. */
static uint32_t see(struct world *world, uint64_t identity, uint64_t at_ns, uint64_t address)
{
    const struct span_sight sight = {true, identity};
    const struct stack stack = {.addresses = &address, .depth = 1};
    uint32_t sample;
    assert_int_equal(spans_note(&options, &world->results, &world->thread, 7, &sight, at_ns), 0);
    const struct sample_labels labels = {.syscall_number = -1,
                                         .aside = spans_aside(&options, &world->thread, 7)};
    assert_int_equal(stack_table_add(&world->results.stacks, 0, &stack, &labels, 1, 10, &sample),
                     0);
    stack_table_count_sleeps(&world->results.stacks, sample, 1);
    world->results.stacks.samples[sample].waited_ticks += 0.5;
    world->results.stacks.samples[sample].part_ns += 3;
    world->thread.account.last_sample = sample;
    ledger_note_sample(&world->thread.account.ledger, ACCOUNT_ASLEEP, sample);
    return sample;
}

/* The ticks that are shown for the address. */
static uint64_t shown(const struct world *world, uint64_t address)
{
    const struct stack_table *table = &world->results.stacks;
    uint64_t ticks = 0;
    for (size_t i = 0; i < table->sample_count; i++) {
        const struct counted_sample *sample = &table->samples[i];
        if (table->addresses[table->stacks[sample->stack].first_address] != address ||
            sample->labels.aside)
            continue;
        ticks += sample->count;
        assert_int_equal(sample->time_ns, sample->count * 10);
        assert_int_equal(sample->part_ns, sample->count * 3);
        assert_int_equal(sample->sleeps, sample->count);
        assert_true(sample->waited_ticks == 0.5 * (double)sample->count);
    }
    return ticks;
}

static void test_a_short_span_is_left_out(void **state)
{
    struct world *world = *state;
    see(world, 0, 1000, 0x1);
    see(world, 5, 1010, 0x2);
    see(world, 5, 1110, 0x2); /* not longer than 100 */
    see(world, 6, 1120, 0x3); /* another span */
    see(world, 0, 1130, 0x4);
    for (uint64_t address = 1; address <= 4; address++)
        assert_int_equal(shown(world, address), 0);
    assert_int_equal(world->results.counts.spans_dropped, 2);
    assert_int_equal(world->results.counts.spans_dropped_ns, 30);
    assert_int_equal(world->results.counts.spans_kept, 0);
}

static void test_a_long_span_is_kept_from_its_beginning(void **state)
{
    struct world *world = *state;
    see(world, 5, 1000, 0x2);
    see(world, 5, 1050, 0x3);
    uint32_t aside = see(world, 5, 1100, 0x2);
    assert_int_equal(shown(world, 0x2) + shown(world, 0x3), 0);
    uint32_t counting = see(world, 5, 1101, 0x2);
    assert_int_not_equal(counting, aside);
    assert_int_equal(shown(world, 0x2), 3);
    assert_int_equal(shown(world, 0x3), 1);
    see(world, 5, 1900, 0x3);
    assert_int_equal(shown(world, 0x3), 2);
    see(world, 8, 1910, 0x2); /* in rows that were used before */
    assert_int_equal(shown(world, 0x2), 3);
    assert_int_equal(world->results.counts.spans_kept, 1);
    assert_int_equal(spans_end(&options, &world->results, &world->thread, 7), 0);
    assert_int_equal(shown(world, 0x2), 3);
    assert_int_equal(world->results.counts.spans_dropped, 1);
    assert_int_equal(spans_end(&options, &world->results, &world->thread, 7), 0);
    assert_int_equal(world->results.counts.spans_dropped, 1);
}

/* Counts that arrive later for a sample of the span are not lost. */
static void test_a_sleep_that_makes_the_span_long(void **state)
{
    struct world *world = *state;
    const struct span_sight as_before = {0};
    see(world, 5, 1000, 0x2);
    assert_false(spans_change(&options, &world->thread, &as_before, 1100));
    assert_true(spans_change(&options, &world->thread, &as_before, 1101));
    assert_int_equal(spans_note(&options, &world->results, &world->thread, 7, &as_before, 1101), 0);
    assert_int_equal(shown(world, 0x2), 1);
    const struct thread_account *account = &world->thread.account;
    assert_int_equal(world->results.stacks.samples[account->last_sample].labels.aside, 0);
    assert_int_equal(account->ledger.last_sample[ACCOUNT_ASLEEP], account->last_sample);
}

/* Adds a wait that ends where the thread was last seen. */
static uint64_t wait_there(struct world *world)
{
    const struct elapsed_wait wait = {
        .sample = world->thread.account.last_sample, .first_tick = 1, .last_tick = 100};
    uint64_t number;
    assert_int_equal(elapsed_add_wait(&world->results.elapsed[0], &wait, &number), 0);
    return number;
}

/* The number under which the wait's sample is set aside. */
static uint32_t aside_of(const struct world *world, uint64_t number)
{
    const struct elapsed *process = &world->results.elapsed[0];
    return world->results.stacks.samples[process->waits[number - 1].sample].labels.aside;
}

static void pass_tick(struct world *world)
{
    static const struct elapsed_instant awake = {.threads = 1, .running = 1};
    struct results *results = &world->results;
    struct counted_thread threads[8] = {0};
    threads[7] = world->thread;
    const struct counted_threads all = {.items = threads, .count = 8};
    struct elapsed *process = &results->elapsed[0];
    assert_int_equal(spans_place_waits(results, &all, 0), 0);
    assert_int_equal(elapsed_pass(process, &results->stacks, process->told_tick + 1, 0, 1, &awake),
                     0);
}

/* A wait's ticks are attributed later, when the thread may be in another span that uses the same
 * rows. */
static void test_waits_stay_with_their_span(void **state)
{
    struct world *world = *state;
    see(world, 5, 1000, 0x2);
    uint64_t dropped = wait_there(world);
    see(world, 6, 1050, 0x2);
    uint64_t kept = wait_there(world);
    assert_int_equal(aside_of(world, kept), 8);
    pass_tick(world);
    assert_int_equal(aside_of(world, dropped), ASIDE_FOR_GOOD);
    assert_int_equal(aside_of(world, kept), 8);
    see(world, 6, 1151, 0x2);
    see(world, 7, 1160, 0x2);
    uint64_t open = wait_there(world);
    pass_tick(world);
    assert_int_equal(aside_of(world, kept), 0);
    assert_int_equal(aside_of(world, open), 8);
    assert_int_equal(spans_end(&options, &world->results, &world->thread, 7), 0);
    assert_int_equal(aside_of(world, open), ASIDE_FOR_GOOD);
}

static void test_waits_of_spans_between_two_ticks(void **state)
{
    struct world *world = *state;
    see(world, 5, 1000, 0x2);
    uint64_t kept = wait_there(world);
    see(world, 5, 1101, 0x2);
    see(world, 6, 1110, 0x2);
    uint64_t dropped = wait_there(world);
    see(world, 7, 1120, 0x2);
    uint64_t open = wait_there(world);
    pass_tick(world);
    assert_int_equal(aside_of(world, kept), 0);
    assert_int_equal(aside_of(world, dropped), ASIDE_FOR_GOOD);
    assert_int_equal(aside_of(world, open), 8);
}

/* Time owed to samples of a dropped span does not go to the next span. */
static void test_what_is_owed_to_a_short_span(void **state)
{
    struct world *world = *state;
    const struct span_sight none_there = {true, 0};
    const struct thread_account *account = &world->thread.account;
    const struct stack_table *table = &world->results.stacks;
    see(world, 5, 1000, 0x2);
    assert_int_equal(spans_note(&options, &world->results, &world->thread, 7, &none_there, 1010),
                     0);
    assert_int_equal(table->samples[account->last_sample].labels.aside, ASIDE_FOR_GOOD);
    assert_int_equal(table->samples[account->ledger.last_sample[ACCOUNT_ASLEEP]].labels.aside,
                     ASIDE_FOR_GOOD);
}

static void test_labels_that_can_not_be_read_end_no_span(void **state)
{
    struct world *world = *state;
    const struct span_sight not_known = {0};
    see(world, 5, 1000, 0x2);
    assert_int_equal(spans_note(&options, &world->results, &world->thread, 7, &not_known, 1050), 0);
    see(world, 5, 1101, 0x2);
    assert_int_equal(shown(world, 0x2), 2);
}

static void test_all_is_kept_if_nothing_is_asked_for(void **state)
{
    struct world *world = *state;
    const struct span_sight sight = {true, 5};
    assert_false(spans_change(&none, &world->thread, &sight, 1000));
    assert_int_equal(spans_aside(&none, &world->thread, 7), 0);
    assert_int_equal(spans_note(&none, &world->results, &world->thread, 7, &sight, 1000), 0);
    assert_false(world->thread.span.is_open);
    assert_int_equal(spans_aside(&options, &world->thread, 7), ASIDE_FOR_GOOD);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_a_short_span_is_left_out),
        WITH_WORLD(test_a_long_span_is_kept_from_its_beginning),
        WITH_WORLD(test_a_sleep_that_makes_the_span_long),
        WITH_WORLD(test_waits_stay_with_their_span),
        WITH_WORLD(test_waits_of_spans_between_two_ticks),
        WITH_WORLD(test_what_is_owed_to_a_short_span),
        WITH_WORLD(test_labels_that_can_not_be_read_end_no_span),
        WITH_WORLD(test_all_is_kept_if_nothing_is_asked_for),
    };
    return cmocka_run_group_tests_name("spans", tests, NULL, NULL);
}
