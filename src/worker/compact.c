#include "worker/compact.h"

/* Which rows stay, and their new numbers. */
struct numbers {
    struct renumber samples, waits, stacks, label_sets, spaces;
};

/* Visits a stored sample number. */
typedef void sample_fn(struct renumber *samples, uint32_t *sample);

static void keep(struct renumber *samples, uint32_t *sample)
{
    renumber_keep(samples, *sample);
}

static void move(struct renumber *samples, uint32_t *sample)
{
    *sample = renumber_of(samples, *sample);
}

static void each_of_window(struct window *window, struct renumber *samples, sample_fn *visit)
{
    struct window_row *rows = window_rows(window);
    for (uint32_t i = 0; i < window->count; i++)
        visit(samples, &rows[i].sample);
}

/* Includes stale ones: each was a sample's number once, and stays one. */
static void each_of_account(struct thread_account *account, struct renumber *samples,
                            sample_fn *visit)
{
    for (unsigned i = 0; i < ACCOUNT_COUNT; i++) {
        each_of_window(&account->ledger.windows[i], samples, visit);
        visit(samples, &account->ledger.last_sample[i]);
    }
    visit(samples, &account->wait.sample);
    visit(samples, &account->wait.chain_sample);
    visit(samples, &account->last_sample);
    visit(samples, &account->unowned_sample);
    visit(samples, &account->awake_sample);
}

/* Visits all stored sample numbers except those in the timeline. */
static void each_sample(struct results *results, struct counted_threads *threads,
                        struct renumber *samples, sample_fn *visit)
{
    for (size_t i = 0; i < threads->count; i++)
        each_of_account(&threads->items[i].account, samples, visit);
    for (size_t i = 0; i < results->elapsed_count; i++) {
        struct elapsed *process = &results->elapsed[i];
        for (size_t j = 0; j < process->wait_count; j++)
            visit(samples, &process->waits[j].sample);
    }
}

static void find_samples(struct results *results, struct counted_threads *threads, uint32_t epoch,
                         struct renumber *samples)
{
    for (size_t i = 0; i < results->stacks.sample_count; i++) {
        if (results->stacks.samples[i].epoch > epoch)
            renumber_keep(samples, (uint32_t)i);
    }
    each_sample(results, threads, samples, keep);
    timeline_keep_samples(&results->timeline, samples);
    renumber_assign(samples);
}

static void find_waits(const struct results *results, const struct renumber *samples,
                       struct renumber *waits)
{
    for (size_t i = 0; i < results->stacks.sample_count; i++) {
        uint32_t wait_plus_1 = results->stacks.samples[i].labels.wait_plus_1;
        if (renumber_of(samples, (uint32_t)i) != ROW_GONE && wait_plus_1)
            renumber_keep(waits, wait_plus_1 - 1);
    }
    for (size_t i = 0; i < results->deadlocks.row_count; i++) {
        if (results->deadlocks.rows[i].wait_plus_1)
            renumber_keep(waits, results->deadlocks.rows[i].wait_plus_1 - 1);
    }
    waits_keep_chains(&results->waits, waits);
    renumber_assign(waits);
}

static void find_stacks(const struct results *results, const struct renumber *samples,
                        const struct renumber *waits, struct renumber *stacks)
{
    for (size_t i = 0; i < results->stacks.sample_count; i++) {
        if (renumber_of(samples, (uint32_t)i) != ROW_GONE)
            renumber_keep(stacks, results->stacks.samples[i].stack);
    }
    for (size_t i = 0; i < results->waits.count; i++) {
        if (renumber_of(waits, (uint32_t)i) != ROW_GONE)
            renumber_keep(stacks, results->waits.rows[i].owner_stack);
    }
    for (size_t i = 0; i < results->deadlocks.row_count; i++)
        renumber_keep(stacks, results->deadlocks.rows[i].stack);
    for (size_t i = 0; i < results->objects.maker_count; i++)
        renumber_keep(stacks, results->objects.makers[i].maker.stack);
    renumber_assign(stacks);
}

static void find_label_sets(const struct results *results, const struct counted_threads *threads,
                            const struct renumber *samples, struct renumber *label_sets)
{
    for (size_t i = 0; i < results->stacks.sample_count; i++) {
        if (renumber_of(samples, (uint32_t)i) != ROW_GONE)
            renumber_keep(label_sets, results->stacks.samples[i].labels.label_set_plus_1 - 1);
    }
    for (size_t i = 0; i < threads->count; i++)
        renumber_keep(label_sets, threads->items[i].kept.labels.label_set_plus_1 - 1);
    renumber_assign(label_sets);
}

static void find_spaces(const struct results *results, const struct counted_threads *threads,
                        const struct numbers *numbers, struct renumber *spaces)
{
    for (size_t i = 0; i < results->stacks.stack_count; i++) {
        if (renumber_of(&numbers->stacks, (uint32_t)i) != ROW_GONE)
            renumber_keep(spaces, results->stacks.stacks[i].space);
    }
    for (size_t i = 0; i < results->waits.count; i++) {
        if (renumber_of(&numbers->waits, (uint32_t)i) != ROW_GONE)
            renumber_keep(spaces, results->waits.rows[i].space);
    }
    for (size_t i = 0; i < threads->count; i++) {
        if (threads->items[i].kept.is_there)
            renumber_keep(spaces, threads->items[i].kept.space);
    }
}

/* The label set of a thread's last copy is not used after its message. */
static void move_label_sets(struct counted_threads *threads, const struct renumber *label_sets)
{
    for (size_t i = 0; i < threads->count; i++) {
        uint32_t *kept_plus_1 = &threads->items[i].kept.labels.label_set_plus_1;
        *kept_plus_1 = renumber_plus_1(label_sets, *kept_plus_1);
        threads->items[i].label_set_plus_1 = 0;
    }
}

static void move_deadlocks(struct deadlocks *deadlocks, const struct numbers *numbers)
{
    for (size_t i = 0; i < deadlocks->row_count; i++) {
        struct deadlock_thread *row = &deadlocks->rows[i];
        row->stack = renumber_of(&numbers->stacks, row->stack);
        row->wait_plus_1 = renumber_plus_1(&numbers->waits, row->wait_plus_1);
    }
}

/* `label_sets` replaces the present sets. */
static void apply(struct results *results, struct counted_threads *threads, struct owners *owners,
                  struct numbers *numbers, const struct label_sets *label_sets)
{
    stack_table_keep(&results->stacks, &numbers->stacks, &numbers->samples, &numbers->waits,
                     &numbers->label_sets);
    waits_keep(&results->waits, &numbers->waits, &numbers->stacks);
    move_deadlocks(&results->deadlocks, numbers);
    objects_renumber_stacks(&results->objects, &numbers->stacks);
    each_sample(results, threads, &numbers->samples, move);
    timeline_renumber_samples(&results->timeline, &numbers->samples);
    lock_sites_keep(&owners->sites, &numbers->stacks);
    move_label_sets(threads, &numbers->label_sets);
    spaces_forget(&results->spaces, &numbers->spaces);
    label_sets_free(&results->label_sets);
    results->label_sets = *label_sets;
}

static int init_numbers(const struct results *results, struct numbers *numbers)
{
    int err = renumber_init(&numbers->samples, results->stacks.sample_count);
    if (!err)
        err = renumber_init(&numbers->waits, results->waits.count);
    if (!err)
        err = renumber_init(&numbers->stacks, results->stacks.stack_count);
    if (!err)
        err = renumber_init(&numbers->label_sets, results->label_sets.set_count);
    return err ? err : renumber_init(&numbers->spaces, results->spaces.count);
}

int compact(struct results *results, struct counted_threads *threads, struct owners *owners,
            uint32_t epoch)
{
    struct numbers numbers = {0};
    struct label_sets label_sets;
    int err = init_numbers(results, &numbers);
    if (!err) {
        find_samples(results, threads, epoch, &numbers.samples);
        find_waits(results, &numbers.samples, &numbers.waits);
        find_stacks(results, &numbers.samples, &numbers.waits, &numbers.stacks);
        find_label_sets(results, threads, &numbers.samples, &numbers.label_sets);
        find_spaces(results, threads, &numbers, &numbers.spaces);
        err = label_sets_keep(&results->label_sets, &numbers.label_sets, &label_sets);
    }
    if (!err)
        apply(results, threads, owners, &numbers, &label_sets);
    renumber_free(&numbers.samples);
    renumber_free(&numbers.waits);
    renumber_free(&numbers.stacks);
    renumber_free(&numbers.label_sets);
    renumber_free(&numbers.spaces);
    return err;
}
