#include "worker/compact.h"
#include "worker/ended_processes.h"
#include "worker/ended_threads.h"
#include "worker/unused_modules.h"

#include <string.h>

/* Which rows stay, and their new numbers. */
struct numbers {
    struct renumber samples, waits, stacks, label_sets, spaces, strings;
    struct renumber frames, texts; /* those of runtimes; empty: all stay */
};

/* Visits the stored number of a row. */
typedef void number_fn(struct renumber *rows, uint32_t *row);

static void keep(struct renumber *rows, uint32_t *row)
{
    renumber_keep(rows, *row);
}

static void move(struct renumber *rows, uint32_t *row)
{
    *row = renumber_of(rows, *row);
}

static void each_of_window(struct window *window, struct renumber *samples, number_fn *visit)
{
    struct window_row *rows = window_rows(window);
    for (uint32_t i = 0; i < window->count; i++)
        visit(samples, &rows[i].sample);
}

/* Includes stale numbers, which must remain numbers of samples. */
static void each_of_account(struct thread_account *account, struct renumber *samples,
                            number_fn *visit)
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
    for (unsigned i = 0; i < OPEN_WAITS_MAX; i++) {
        if (account->wakers.open[i].departed_ns)
            visit(samples, &account->wakers.open[i].sample);
    }
}

static void each_of_goroutines(struct program_goroutines *goroutines, struct renumber *samples,
                               number_fn *visit)
{
    for (size_t i = 0; i < goroutines->count; i++) {
        uint32_t *sample_plus_1 = &goroutines->items[i].sample_plus_1, sample = *sample_plus_1 - 1;
        if (!*sample_plus_1)
            continue;
        visit(samples, &sample);
        *sample_plus_1 = sample + 1;
    }
}

/* Visits all stored sample numbers except those in the timeline. */
static void each_sample(struct results *results, struct counted_threads *threads,
                        struct programs *programs, struct renumber *samples, number_fn *visit)
{
    for (size_t i = 0; programs && i < programs->count; i++)
        each_of_goroutines(&programs->items[i].tables->goroutines, samples, visit);
    for (size_t i = 0; i < threads->count; i++)
        each_of_account(&threads->items[i].account, samples, visit);
    for (size_t i = 0; i < results->elapsed_count; i++) {
        struct elapsed *process = &results->elapsed[i];
        for (size_t j = 0; j < process->wait_count; j++)
            visit(samples, &process->waits[j].sample);
    }
}

static void find_samples(struct results *results, struct counted_threads *threads,
                         const struct compaction *how, struct renumber *samples)
{
    for (size_t i = 0; i < results->stacks.sample_count; i++) {
        const struct counted_sample *sample = &results->stacks.samples[i];
        bool is_of_use =
            how->old == OLD_STAY || (how->old == OLD_JOIN && !counted_sample_is_empty(sample));
        if (is_of_use || sample->epoch > how->epoch)
            renumber_keep(samples, (uint32_t)i);
    }
    each_sample(results, threads, how->programs, samples, keep);
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
        if (renumber_of(waits, (uint32_t)i) == ROW_GONE)
            continue;
        renumber_keep(stacks, results->waits.rows[i].owner_stack);
        renumber_keep(stacks, results->waits.rows[i].waker_stack_plus_1 - 1);
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

static void each_of_labels(struct sample_labels *labels, struct renumber *strings, number_fn *visit)
{
    visit(strings, &labels->thread_name);
    visit(strings, &labels->wait_channel);
    visit(strings, &labels->wait_reason);
    visit(strings, &labels->kernel_stack);
}

static bool has_named_key(const struct counted_wait *wait)
{
    enum resource_kind kind = (enum resource_kind)wait->kind;
    return kind != RESOURCE_NOT_KNOWN && kind != RESOURCE_THREAD && !resource_is_lock(kind);
}

static void each_of_wait(struct counted_wait *wait, struct renumber *strings, number_fn *visit)
{
    visit(strings, &wait->owner_name);
    visit(strings, &wait->waker_name);
    visit(strings, &wait->waker_kernel_stack);
    if (has_named_key(wait)) {
        uint32_t name = (uint32_t)wait->key;
        visit(strings, &name);
        wait->key = name;
    }
}

/* Visits the strings of rows that stay, which still have their old numbers. Those of the timeline
 * and of makers are visited elsewhere. */
static void each_string(struct results *results, struct counted_threads *threads,
                        struct numbers *numbers, number_fn *visit)
{
    struct stack_table *table = &results->stacks;
    struct renumber *strings = &numbers->strings;
    for (size_t i = 0; i < table->process_count; i++)
        visit(strings, &table->processes[i].name);
    for (size_t i = 0; i < table->sample_count; i++) {
        if (renumber_of(&numbers->samples, (uint32_t)i) != ROW_GONE)
            each_of_labels(&table->samples[i].labels, strings, visit);
    }
    for (size_t i = 0; i < results->waits.count; i++) {
        if (renumber_of(&numbers->waits, (uint32_t)i) != ROW_GONE)
            each_of_wait(&results->waits.rows[i], strings, visit);
    }
    for (size_t i = 0; i < results->deadlocks.row_count; i++)
        visit(strings, &results->deadlocks.rows[i].name);
    for (size_t i = 0; i < threads->count; i++) {
        visit(strings, &threads->items[i].name);
        each_of_labels(&threads->items[i].kept.labels, strings, visit);
    }
}

static void find_strings(struct results *results, struct counted_threads *threads,
                         struct numbers *numbers)
{
    renumber_keep(&numbers->strings, 0);
    each_string(results, threads, numbers, keep);
    timeline_keep_names(&results->timeline, &numbers->strings);
    for (size_t i = 0; i < results->objects.maker_count; i++)
        renumber_keep(&numbers->strings, results->objects.makers[i].maker.name);
    renumber_assign(&numbers->strings);
}

static void each_of_addresses(const struct runtime_frames *frames, uint64_t *addresses,
                              size_t count, struct renumber *rows, number_fn *visit)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t number = runtime_frames_number(frames, addresses[i]);
        if (number == INDEX_NONE)
            continue;
        visit(rows, &number);
        addresses[i] = runtime_frames_address(number);
    }
}

/* Visits the frames of runtimes in stacks that stay, which still have their old numbers, and in
 * those that may be counted later. */
static void each_frame(struct results *results, struct counted_threads *threads,
                       struct numbers *numbers, number_fn *visit)
{
    const struct runtime_frames *frames = &results->runtime_frames;
    struct stack_table *table = &results->stacks;
    for (size_t i = 0; i < table->stack_count; i++) {
        const struct counted_stack *stack = &table->stacks[i];
        if (renumber_of(&numbers->stacks, (uint32_t)i) != ROW_GONE)
            each_of_addresses(frames, &table->addresses[stack->first_address], stack->depth,
                              &numbers->frames, visit);
    }
    for (size_t i = 0; i < threads->count; i++) {
        struct kept_stack *kept = &threads->items[i].kept;
        if (kept->is_there)
            each_of_addresses(frames, kept->stack.addresses, kept->stack.depth, &numbers->frames,
                              visit);
    }
}

/* Dropping frames makes programs read their code again, so it is not done each time. */
static int find_frames(struct results *results, struct counted_threads *threads,
                       struct numbers *numbers)
{
    const struct runtime_frames *frames = &results->runtime_frames;
    if (!runtime_frames_are_crowded(frames))
        return 0;
    int err = renumber_init(&numbers->frames, frames->count);
    if (!err)
        err = renumber_init(&numbers->texts, frames->strings.count);
    if (err)
        return err;
    each_frame(results, threads, numbers, keep);
    runtime_frames_keep_texts(frames, &numbers->frames, &numbers->texts);
    renumber_assign(&numbers->frames);
    renumber_assign(&numbers->texts);
    return 0;
}

/* The label set of a thread's last copy is used only while its message is taken. */
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

/* Waits that are not counted yet may refer, through their wakers, to stacks, names and processes
 * that have gone. */
static void forget_wakers(struct counted_threads *threads)
{
    for (size_t i = 0; i < threads->count; i++) {
        struct thread_wakers *wakers = &threads->items[i].account.wakers;
        memset(wakers->ended, 0, sizeof wakers->ended);
    }
}

static bool keeps_all(const struct renumber *rows)
{
    return renumber_kept(rows) == rows->count;
}

static bool keeps_frames(const struct numbers *numbers)
{
    return keeps_all(&numbers->frames) && keeps_all(&numbers->texts);
}

/* Before stacks are indexed, because it changes their addresses. */
static void drop_frames(struct results *results, struct counted_threads *threads,
                        struct programs *programs, struct numbers *numbers)
{
    if (keeps_frames(numbers))
        return;
    each_frame(results, threads, numbers, move);
    runtime_frames_keep(&results->runtime_frames, &numbers->frames, &numbers->texts);
    for (size_t i = 0; programs && i < programs->count; i++)
        program_python_forget_codes(&programs->items[i].tables->python);
}

/* `label_sets` replaces the present sets. */
static void apply(struct results *results, struct counted_threads *threads, struct owners *owners,
                  struct programs *programs, struct numbers *numbers,
                  const struct label_sets *label_sets)
{
    each_string(results, threads, numbers, move);
    timeline_renumber_names(&results->timeline, &numbers->strings);
    strings_keep(&results->strings, &numbers->strings);
    peer_waits_limit_names(&owners->peers, results->strings.count);
    drop_frames(results, threads, programs, numbers);
    stack_table_keep(&results->stacks, &numbers->stacks, &numbers->samples, &numbers->waits,
                     &numbers->label_sets);
    waits_keep(&results->waits, &numbers->waits, &numbers->stacks);
    move_deadlocks(&results->deadlocks, numbers);
    objects_renumber(&results->objects, &numbers->stacks, &numbers->strings);
    each_sample(results, threads, programs, &numbers->samples, move);
    timeline_renumber_samples(&results->timeline, &numbers->samples);
    lock_sites_keep(&owners->sites, &numbers->stacks);
    move_label_sets(threads, &numbers->label_sets);
    label_sets_free(&results->label_sets);
    results->label_sets = *label_sets;
}

static int init_numbers(const struct results *results, struct numbers *numbers)
{
    int err = renumber_init(&numbers->waits, results->waits.count);
    if (!err)
        err = renumber_init(&numbers->stacks, results->stacks.stack_count);
    if (!err)
        err = renumber_init(&numbers->label_sets, results->label_sets.set_count);
    if (!err)
        err = renumber_init(&numbers->strings, results->strings.count);
    return err ? err : renumber_init(&numbers->spaces, results->spaces.count);
}

/* Then nothing is renumbered, and the recorder's copy stays valid. */
static bool goes_nothing(const struct numbers *numbers)
{
    return keeps_all(&numbers->samples) && keeps_all(&numbers->waits) &&
           keeps_all(&numbers->stacks) && keeps_all(&numbers->label_sets) &&
           keeps_all(&numbers->strings) && keeps_frames(numbers);
}

/* Drops the rows that do not stay. */
static int drop_rows(struct results *results, struct counted_threads *threads,
                     struct owners *owners, struct programs *programs, struct numbers *numbers)
{
    struct label_sets label_sets;
    int err = label_sets_keep(&results->label_sets, &numbers->label_sets, &label_sets);
    if (!err)
        apply(results, threads, owners, programs, numbers, &label_sets);
    return err;
}

/* A thread that comes back starts over, so its account refers to nothing. */
static void forget_gone_threads(struct counted_threads *threads)
{
    for (size_t i = 0; i < threads->count; i++) {
        struct thread_account *account = &threads->items[i].account;
        if (!threads->items[i].is_gone)
            continue;
        ledger_begin(&account->ledger, 0, NULL);
        account->wait = (struct thread_wait){0};
        account->last_sample = account->unowned_sample = account->awake_sample = 0;
        account->wakers = (struct thread_wakers){0};
    }
}

/* Whether timelines move to merged samples. In a profile that begins at a checkpoint they do not,
 * because it shows processes one by one. */
static bool timeline_follows(const struct results *results)
{
    return !results->timeline.is_ring;
}

/* Moves the timelines to the samples that others were joined to. */
static int follow_joined(struct results *results)
{
    struct stack_table *table = &results->stacks;
    struct renumber rows;
    int err = renumber_init(&rows, table->sample_count);
    for (uint32_t i = 0; i < table->sample_count && !err; i++) {
        bool is_empty = counted_sample_is_empty(&table->samples[i]); /* and not in use again */
        uint32_t joined_plus_1 = is_empty ? table->samples[i].joined_plus_1 : 0;
        rows.to[i] = joined_plus_1 ? joined_plus_1 - 1 : i;
        table->samples[i].joined_plus_1 = 0;
    }
    if (!err)
        timeline_renumber_samples(&results->timeline, &rows);
    renumber_free(&rows);
    return err;
}

/* Joins ended processes and threads. */
static int join_ended(struct results *results, struct counted_threads *threads,
                      const struct compaction *how, struct ended_processes *ended)
{
    struct renumber in_use;
    if (how->old == OLD_STAY)
        return 0;
    forget_gone_threads(threads);
    int err = renumber_init(&in_use, results->stacks.sample_count);
    if (err)
        return err;
    each_sample(results, threads, how->programs, &in_use, keep);
    if (!timeline_follows(results))
        timeline_keep_samples(&results->timeline, &in_use);
    err = ended_processes_join(ended, results, threads, how->epoch, &in_use, how->old == OLD_JOIN);
    /* New rows are of what has ended, and are not in use. */
    if (!err && how->old == OLD_JOIN)
        err = ended_threads_join_samples(results, threads, how->epoch, &in_use);
    if (!err && timeline_follows(results))
        err = follow_joined(results);
    renumber_free(&in_use);
    return err;
}

/* Merges ended processes and threads, chooses the samples that stay, and merges the makers that
 * these do not need. */
static int choose_samples(struct results *results, struct counted_threads *threads,
                          const struct compaction *how, struct ended_processes *ended,
                          struct renumber *samples)
{
    int err = join_ended(results, threads, how, ended);
    if (!err)
        err = renumber_init(samples, results->stacks.sample_count);
    if (err)
        return err;
    find_samples(results, threads, how, samples);
    return ended_threads_join_makers(results, samples);
}

/* A lock's key is the address of data. */
static void note_shared_key(struct space *shared, uint64_t key)
{
    const struct mapping *mapping = space_find(shared, key);
    if (!mapping)
        mapping = space_find_memory(shared, key);
    if (mapping)
        shared->mappings[mapping - shared->mappings].is_sampled = true;
}

/* Notes which mappings of the shared space stacks and waits refer to. */
static void note_shared(const struct results *results)
{
    struct space *shared = results->spaces.shared;
    for (size_t i = 0; i < shared->mapping_count; i++)
        shared->mappings[i].is_sampled = false;
    for (size_t i = 0; i < results->stacks.stack_count; i++) {
        const struct counted_stack *stack = &results->stacks.stacks[i];
        if (stack->space == shared->id)
            space_note_sampled(shared, &results->stacks.addresses[stack->first_address],
                               stack->depth);
    }
    for (size_t i = 0; i < results->waits.count; i++) {
        if (results->waits.rows[i].space == shared->id)
            note_shared_key(shared, results->waits.rows[i].key);
    }
}

static void need_code(const struct space *space, const uint64_t *addresses, size_t count)
{
    for (size_t i = 0; i < count && space->jit; i++)
        jit_need(space->jit, space->id, addresses[i]);
}

/* Keeps the generated code that stacks are in. */
static int forget_code(struct results *results, const struct counted_threads *threads)
{
    const struct stack_table *table = &results->stacks;
    struct spaces *spaces = &results->spaces;
    int err = 0;
    for (size_t i = 0; i < table->stack_count; i++) {
        const struct counted_stack *stack = &table->stacks[i];
        if (stack->space < spaces->count)
            need_code(spaces->items[stack->space], &table->addresses[stack->first_address],
                      stack->depth);
    }
    for (size_t i = 0; i < threads->count; i++) {
        const struct kept_stack *kept = &threads->items[i].kept;
        if (kept->is_there)
            need_code(spaces->items[kept->space], kept->stack.addresses, kept->stack.depth);
    }
    for (size_t i = 0; i < spaces->count && !err; i++) {
        if (spaces->items[i]->owns_jit)
            err = jit_keep_needed(spaces->items[i]->jit);
    }
    return err;
}

static int forget_spaces(struct results *results, const struct counted_threads *threads,
                         const struct compaction *how, const struct renumber *stay)
{
    struct spaces *spaces = &results->spaces;
    if (spaces->shared)
        note_shared(results);
    spaces_forget(spaces, stay);
    int err = forget_code(results, threads);
    for (size_t i = 0; i < spaces->count && how->rules; i++) {
        if (spaces->items[i]->is_free)
            rule_tables_forget_generated(how->rules, spaces->items[i]->id);
    }
    return err ? err : unused_modules_free(results, how->rules);
}

int compact(struct results *results, struct counted_threads *threads, struct owners *owners,
            const struct compaction *how)
{
    struct numbers numbers = {0};
    struct ended_processes ended = {0};
    int err = choose_samples(results, threads, how, &ended, &numbers.samples);
    if (!err)
        err = init_numbers(results, &numbers);
    if (!err) {
        find_waits(results, &numbers.samples, &numbers.waits);
        find_stacks(results, &numbers.samples, &numbers.waits, &numbers.stacks);
        find_label_sets(results, threads, &numbers.samples, &numbers.label_sets);
        find_spaces(results, threads, &numbers, &numbers.spaces);
        find_strings(results, threads, &numbers);
        err = find_frames(results, threads, &numbers);
    }
    if (!err && !goes_nothing(&numbers))
        err = drop_rows(results, threads, owners, how->programs, &numbers);
    if (!err)
        err = forget_spaces(results, threads, how, &numbers.spaces);
    if (!err) {
        forget_wakers(threads);
        ended_processes_drop(&ended, results, owners);
    }
    ended_processes_free(&ended);
    renumber_free(&numbers.samples);
    renumber_free(&numbers.waits);
    renumber_free(&numbers.stacks);
    renumber_free(&numbers.label_sets);
    renumber_free(&numbers.spaces);
    renumber_free(&numbers.strings);
    renumber_free(&numbers.frames);
    renumber_free(&numbers.texts);
    return err;
}
