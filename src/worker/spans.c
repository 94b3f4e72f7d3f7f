#include "worker/spans.h"

#include <errno.h>

static uint64_t length_ns(const struct thread_span *span, uint64_t at_ns)
{
    return at_ns > span->begin_ns ? at_ns - span->begin_ns : 0;
}

/* The row that counts in place of one that is set aside. */
static int find_counting(struct stack_table *table, uint32_t aside, uint32_t *ret_row)
{
    if (!table->samples[aside].labels.aside) {
        *ret_row = aside;
        return 0;
    }
    return stack_table_not_aside(table, aside, ret_row);
}

static void empty(struct counted_sample *row)
{
    row->count = row->time_ns = row->part_ns = 0;
    row->sleeps = 0;
    row->waited_ticks = 0;
}

/* What comes for samples that the thread had in the span is for the rows that count. */
static int point_to_counting(struct stack_table *table, struct thread_account *account,
                             uint32_t aside)
{
    struct ledger *ledger = &account->ledger;
    uint32_t *const places[] = {&account->last_sample, &account->awake_sample,
                                &account->wait.sample, &account->unowned_sample};
    int err = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places && !err; i++) {
        if (*places[i] < table->sample_count && table->samples[*places[i]].labels.aside == aside)
            err = find_counting(table, *places[i], places[i]);
    }
    for (unsigned i = 0; i < ACCOUNT_COUNT && !err; i++) {
        if (ledger->has_sample[i] && table->samples[ledger->last_sample[i]].labels.aside == aside)
            err = find_counting(table, ledger->last_sample[i], &ledger->last_sample[i]);
    }
    return err;
}

/* Adds the thread's rows that are set aside to those that count. */
static int keep(struct results *results, struct counted_thread *thread, uint32_t aside)
{
    struct stack_table *table = &results->stacks;
    size_t count = table->sample_count; /* more may be added */
    for (size_t i = 0; i < count; i++) {
        uint32_t row;
        if (table->samples[i].labels.aside != aside)
            continue;
        int err = find_counting(table, (uint32_t)i, &row);
        if (err)
            return err;
        struct counted_sample *from = &table->samples[i], *to = &table->samples[row];
        stack_table_count(table, row, from->count, from->time_ns, from->part_ns);
        stack_table_count_sleeps(table, row, from->sleeps);
        to->waited_ticks += from->waited_ticks;
        empty(from);
    }
    return point_to_counting(table, &thread->account, aside);
}

static void drop(struct results *results, uint32_t aside)
{
    struct stack_table *table = &results->stacks;
    for (size_t i = 0; i < table->sample_count; i++) {
        struct counted_sample *row = &table->samples[i];
        if (row->labels.aside != aside)
            continue;
        results->counts.spans_dropped_ns += row->time_ns;
        empty(row);
    }
}

int spans_end(const struct span_options *options, struct results *results,
              struct counted_thread *thread, uint32_t number)
{
    struct thread_span *span = &thread->span;
    int err = 0;
    if (!options->key || !span->is_open)
        return 0;
    if (span->is_slow)
        err = keep(results, thread, number + 1);
    else
        drop(results, number + 1);
    results->counts.spans_kept += span->is_slow;
    results->counts.spans_dropped += !span->is_slow;
    *span = (struct thread_span){0};
    return err;
}

/* Whether the thread was seen in the span that it has. */
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
    int err = spans_end(options, results, thread, number);
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
