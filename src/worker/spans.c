#include "worker/spans.h"

static uint64_t length_ns(const struct thread_span *span, uint64_t at_ns)
{
    return at_ns > span->begin_ns ? at_ns - span->begin_ns : 0;
}

/* Redirects what is still owed to the span's samples to rows that count, or to rows that never do,
 * because the next span reuses its rows. */
static int point_elsewhere(struct stack_table *table, struct thread_account *account,
                           uint32_t aside, uint32_t to_aside)
{
    struct ledger *ledger = &account->ledger;
    uint32_t *const places[] = {&account->last_sample, &account->awake_sample,
                                &account->wait.sample, &account->unowned_sample};
    int err = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places && !err; i++) {
        if (*places[i] < table->sample_count && table->samples[*places[i]].labels.aside == aside)
            err = stack_table_aside(table, *places[i], to_aside, places[i]);
    }
    for (unsigned i = 0; i < ACCOUNT_COUNT && !err; i++) {
        uint32_t *last = &ledger->last_sample[i];
        if (ledger->has_sample[i] && table->samples[*last].labels.aside == aside)
            err = stack_table_aside(table, *last, to_aside, last);
    }
    return err;
}

static int place_wait(struct stack_table *table, const struct elapsed *process,
                      const struct ended_span *ended, struct elapsed_wait *wait)
{
    if (ended->told_tick != process->told_tick || wait->number > ended->last_wait)
        return 0;
    return stack_table_aside(table, wait->sample, ended->aside, &wait->sample);
}

int spans_place_waits(struct results *results, const struct counted_threads *threads,
                      uint32_t process_number)
{
    struct elapsed *process = &results->elapsed[process_number];
    struct stack_table *table = &results->stacks;
    int err = 0;
    for (size_t i = 0; i < process->wait_count && !err; i++) {
        struct elapsed_wait *wait = &process->waits[i];
        uint32_t aside = table->samples[wait->sample].labels.aside;
        if (aside && aside != ASIDE_FOR_GOOD)
            err = place_wait(table, process, &threads->items[aside - 1].ended_span, wait);
    }
    return err;
}

static int place_waits(struct results *results, const struct counted_thread *thread, uint32_t aside)
{
    struct elapsed *process = &results->elapsed[thread->process];
    struct stack_table *table = &results->stacks;
    int err = 0;
    for (size_t i = 0; i < process->wait_count && !err; i++) {
        struct elapsed_wait *wait = &process->waits[i];
        if (table->samples[wait->sample].labels.aside == aside)
            err = place_wait(table, process, &thread->ended_span, wait);
    }
    return err;
}

/* Stores where the span's open waits belong. They are placed together at the next tick. */
static int note_waits(struct results *results, struct counted_thread *thread, uint32_t aside,
                      uint32_t to_aside)
{
    const struct elapsed *process = &results->elapsed[thread->process];
    struct ended_span *ended = &thread->ended_span;
    bool is_other =
        ended->told_tick == process->told_tick && ended->last_wait && ended->aside != to_aside;
    int err = is_other ? place_waits(results, thread, aside) : 0;
    *ended = (struct ended_span){process->waits_added, process->told_tick, to_aside};
    return err;
}

static int move_owed(struct results *results, struct counted_thread *thread, uint32_t aside,
                     uint32_t to_aside)
{
    int err = point_elsewhere(&results->stacks, &thread->account, aside, to_aside);
    return err ? err : note_waits(results, thread, aside, to_aside);
}

/* Adds the thread's rows that are set aside to the rows that count. */
static int keep(struct results *results, struct counted_thread *thread, uint32_t aside)
{
    struct stack_table *table = &results->stacks;
    uint32_t taken, row;
    while (stack_table_take_aside(table, aside, &taken)) {
        int err = stack_table_aside(table, taken, 0, &row);
        if (err)
            return err;
        struct counted_sample *from = &table->samples[taken], *to = &table->samples[row];
        stack_table_count(table, row, from->count, from->time_ns, from->part_ns);
        stack_table_count_sleeps(table, row, from->sleeps);
        to->waited_ticks += from->waited_ticks;
        counted_sample_empty(from);
    }
    return move_owed(results, thread, aside, 0);
}

static int drop(struct results *results, struct counted_thread *thread, uint32_t aside)
{
    struct stack_table *table = &results->stacks;
    uint32_t taken;
    while (stack_table_take_aside(table, aside, &taken)) {
        struct counted_sample *row = &table->samples[taken];
        results->counts.spans_dropped_ns += row->time_ns;
        counted_sample_empty(row);
    }
    return move_owed(results, thread, aside, ASIDE_FOR_GOOD);
}

static int end(struct results *results, struct counted_thread *thread, uint32_t aside)
{
    struct thread_span *span = &thread->span;
    if (!span->is_open)
        return 0;
    int err = span->is_slow ? keep(results, thread, aside) : drop(results, thread, aside);
    results->counts.spans_kept += span->is_slow;
    results->counts.spans_dropped += !span->is_slow;
    *span = (struct thread_span){0};
    return err;
}

int spans_end(const struct span_options *options, struct results *results,
              struct counted_thread *thread, uint32_t number)
{
    if (!options->key)
        return 0;
    int err = end(results, thread, number + 1);
    return err ? err : place_waits(results, thread, number + 1);
}

/* Whether the thread is still in its span. */
static bool goes_on(const struct thread_span *span, const struct span_sight *sight)
{
    return !sight->is_known ||
           (span->is_open ? sight->identity == span->identity : !sight->identity);
}

bool spans_change(const struct span_options *options, const struct counted_thread *thread,
                  const struct span_sight *sight, uint64_t at_ns)
{
    const struct thread_span *span = &thread->span;
    if (!options->key)
        return false;
    return !goes_on(span, sight) ||
           (span->is_open && !span->is_slow && length_ns(span, at_ns) > options->min_ns);
}

int spans_note(const struct span_options *options, struct results *results,
               struct counted_thread *thread, uint32_t number, const struct span_sight *sight,
               uint64_t at_ns)
{
    struct thread_span *span = &thread->span;
    if (!spans_change(options, thread, sight, at_ns))
        return 0;
    if (goes_on(span, sight)) {
        span->is_slow = true;
        return keep(results, thread, number + 1);
    }
    int err = end(results, thread, number + 1);
    if (!err && sight->identity)
        *span =
            (struct thread_span){.is_open = true, .identity = sight->identity, .begin_ns = at_ns};
    return err;
}

uint32_t spans_aside(const struct span_options *options, const struct counted_thread *thread,
                     uint32_t number)
{
    if (!options->key || thread->span.is_slow)
        return 0;
    return thread->span.is_open ? number + 1 : ASIDE_FOR_GOOD;
}
