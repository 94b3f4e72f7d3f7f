#include "worker/ended_processes.h"
#include "worker/ended_threads.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

/* State of one join. */
struct join {
    struct ended_processes *ended;
    struct results *results;
    uint32_t epoch;
    const struct renumber *in_use;
    struct ended_names names;
    uint32_t *stacks_plus_1;        /* by stack: its copy in the shared space; 0: none yet */
    uint32_t *waits_plus_1;         /* by wait: its copy without ended processes; 0: none yet */
    size_t stack_count, wait_count; /* when the join began */
    uint64_t *addresses;
    size_t address_capacity;
};

static bool has_ended(const struct ended_processes *ended, uint32_t process)
{
    return process < ended->rows.count && renumber_of(&ended->rows, process) != ROW_GONE;
}

/* ---- Which processes ---- */

static void leave_out(struct ended_processes *ended, uint32_t process)
{
    if (process < ended->rows.count)
        ended->rows.to[process] = ROW_GONE;
}

/* Whether it may be counted again, or is part of a profile that begins at a checkpoint. */
static bool is_new(const struct join *join, uint32_t number)
{
    const struct counted_sample *sample = &join->results->stacks.samples[number];
    return sample->epoch > join->epoch || renumber_of(join->in_use, number) != ROW_GONE ||
           (counted_sample_is_aside(sample) && !counted_sample_is_empty(sample));
}

static void find_ended(struct join *join, const struct counted_threads *threads)
{
    struct results *results = join->results;
    const struct objects *objects = &results->objects;
    struct ended_processes *ended = join->ended;
    for (uint32_t i = 0; i < ended->rows.count; i++) {
        const struct elapsed *elapsed = &results->elapsed[i];
        if (results->stacks.processes[i].pid && elapsed->end_ns &&
            elapsed->end_epoch <= join->epoch)
            renumber_keep(&ended->rows, i);
    }
    for (size_t i = 0; i < threads->count; i++) {
        if (threads->items[i].tid && !threads->items[i].is_gone)
            leave_out(ended, threads->items[i].process);
    }
    for (uint32_t i = 0; i < results->stacks.sample_count; i++) {
        if (is_new(join, i))
            leave_out(ended, results->stacks.samples[i].labels.process);
    }
    for (size_t i = 0; i < objects->slot_count; i++) {
        if (objects->slots[i].maker_plus_1)
            leave_out(ended, objects->slots[i].process);
    }
}

/* ---- Which rows they join ---- */

/* The rows that processes are joined to, by program name. */
struct targets {
    uint32_t *rows_plus_1;
    size_t count;
    uint32_t other; /* the name used beyond the limit */
};

static int find_targets(struct join *join, struct targets *targets)
{
    struct results *results = join->results;
    int err = strings_intern(&results->strings, ENDED_NAME_OTHER, &targets->other);
    if (!err)
        targets->rows_plus_1 = calloc(results->strings.count, sizeof *targets->rows_plus_1);
    if (err || !targets->rows_plus_1)
        return -ENOMEM;
    for (uint32_t i = 0; i < results->stacks.process_count; i++) {
        const struct counted_process *process = &results->stacks.processes[i];
        if (process->is_free || process->pid)
            continue;
        targets->rows_plus_1[process->name] = i + 1;
        targets->count++;
    }
    return 0;
}

/* The first ended process of a name provides the row for all of that name. */
static uint32_t target_of(struct targets *targets, struct counted_process *processes, uint32_t row)
{
    uint32_t name = processes[row].name;
    if (!targets->rows_plus_1[name] && targets->count >= ENDED_NAMES_MAX)
        name = targets->other;
    if (!targets->rows_plus_1[name]) {
        targets->rows_plus_1[name] = row + 1;
        targets->count++;
        processes[row].pid = 0;
        processes[row].name = name;
    }
    return targets->rows_plus_1[name] - 1;
}

/* Marks ended processes that have makers. */
static void find_makers(const struct join *join, bool *are_makers)
{
    const struct objects *objects = &join->results->objects;
    for (size_t i = 0; i < objects->maker_count; i++) {
        if (has_ended(join->ended, objects->makers[i].maker.process))
            are_makers[objects->makers[i].maker.process] = true;
    }
}

static int choose_rows(struct join *join, bool joins_all)
{
    struct ended_processes *ended = join->ended;
    struct results *results = join->results;
    struct targets targets = {0};
    bool *are_makers = calloc(ended->rows.count + 1, sizeof *are_makers);
    int err = are_makers ? find_targets(join, &targets) : -ENOMEM;
    if (!err)
        err = elapsed_settle(&results->stacks, results->elapsed, &ended->rows);
    if (!err)
        find_makers(join, are_makers);
    for (uint32_t i = 0; i < ended->rows.count && !err; i++) {
        ended->joined[i] = i;
        if (!has_ended(ended, i) || !(joins_all || are_makers[i]))
            continue;
        ended->joined[i] = target_of(&targets, results->stacks.processes, i);
        if (ended->joined[i] == i)
            continue; /* others are joined to it, each time */
        results->counts.processes_joined += joins_all;
        elapsed_join(&results->elapsed[ended->joined[i]], &results->elapsed[i]);
    }
    free(targets.rows_plus_1);
    free(are_makers);
    return err;
}

/* ---- What is joined ---- */

static int share_addresses(struct join *join, const struct counted_stack *stack)
{
    struct results *results = join->results;
    int err = array_reserve(&join->addresses, &join->address_capacity, stack->depth + 1);
    for (size_t i = 0; i < stack->depth && !err; i++) {
        uint64_t address = results->stacks.addresses[stack->first_address + i];
        join->addresses[i] = address;
        if (!runtime_frames_find(&results->runtime_frames, address)) /* those are of all spaces */
            err = spaces_share(&results->spaces, results->spaces.items[stack->space], address,
                               &join->addresses[i]);
    }
    return err;
}

/* Copies the stack to the shared space, once. */
static int share_stack(struct join *join, uint32_t number, uint32_t *ret_stack)
{
    struct results *results = join->results;
    const struct counted_stack stack = results->stacks.stacks[number];
    *ret_stack = number;
    if (number >= join->stack_count || stack.space >= results->spaces.count ||
        results->spaces.items[stack.space] == results->spaces.shared)
        return 0;
    uint32_t *known = &join->stacks_plus_1[number];
    if (!*known) {
        int err = share_addresses(join, &stack);
        const struct stack shared = {
            .addresses = join->addresses, .depth = stack.depth, .cut = (enum stack_cut)stack.cut};
        uint32_t space = stack.depth ? results->spaces.shared->id : stack.space;
        if (!err)
            err = stack_table_add_stack(&results->stacks, space, &shared, ret_stack);
        if (err)
            return err;
        *known = *ret_stack + 1;
    }
    *ret_stack = *known - 1;
    return 0;
}

/* A lock in a file keeps its identity; of any other, only the kind is kept. */
static int share_key(struct join *join, struct counted_wait *wait)
{
    struct results *results = join->results;
    enum resource_kind kind = (enum resource_kind)wait->kind;
    uint32_t name;
    wait->vtable = 0;
    if (resource_is_lock(kind) && wait->space < results->spaces.count) {
        int err = spaces_share(&results->spaces, results->spaces.items[wait->space], wait->key,
                               &wait->key);
        wait->space = err ? wait->space : results->spaces.shared->id;
        return err;
    }
    if (kind == RESOURCE_THREAD)
        wait->key = 0;
    if (kind != RESOURCE_PROCESS)
        return 0;
    int err = strings_intern(&results->strings, resource_kind_name(kind), &name);
    wait->key = name;
    return err;
}

static int share_owner(struct join *join, struct counted_wait *wait)
{
    wait->owner_process = join->ended->joined[wait->owner_process];
    wait->owner_tid = 0;
    wait->owner_name = ended_names_get(&join->names, wait->owner_name);
    return wait->owner_stack == WAIT_NO_STACK
               ? 0
               : share_stack(join, wait->owner_stack, &wait->owner_stack);
}

static int share_waker(struct join *join, struct counted_wait *wait)
{
    uint32_t stack;
    wait->waker_process_plus_1 = join->ended->joined[wait->waker_process_plus_1 - 1] + 1;
    wait->waker_tid = 0;
    wait->waker_name = ended_names_get(&join->names, wait->waker_name);
    if (!wait->waker_stack_plus_1)
        return 0;
    int err = share_stack(join, wait->waker_stack_plus_1 - 1, &stack);
    wait->waker_stack_plus_1 = stack + 1;
    return err;
}

/* Copies the wait without ended processes, once, along with the chain of its owners' waits. */
static int share_wait(struct join *join, uint32_t wait_plus_1, uint32_t *ret_wait_plus_1)
{
    *ret_wait_plus_1 = wait_plus_1;
    if (!wait_plus_1 || wait_plus_1 > join->wait_count)
        return 0;
    if (join->waits_plus_1[wait_plus_1 - 1]) {
        *ret_wait_plus_1 = join->waits_plus_1[wait_plus_1 - 1];
        return 0;
    }
    const struct counted_wait before = join->results->waits.rows[wait_plus_1 - 1];
    struct counted_wait wait = before;
    int err = share_wait(join, before.owner_wait_plus_1, &wait.owner_wait_plus_1);
    bool is_own = has_ended(join->ended, before.process);
    bool is_changed = is_own || wait.owner_wait_plus_1 != before.owner_wait_plus_1;
    if (!err && is_own) {
        wait.process = join->ended->joined[before.process];
        err = share_key(join, &wait);
    }
    if (!err && has_ended(join->ended, before.owner_process)) {
        err = share_owner(join, &wait);
        if (!err && wait.kind == RESOURCE_PROCESS)
            err = share_key(join, &wait);
        is_changed = true;
    }
    if (!err && has_ended(join->ended, before.waker_process_plus_1 - 1)) {
        err = share_waker(join, &wait);
        is_changed = true;
    }
    if (!err && is_changed)
        err = waits_add(&join->results->waits, &wait, ret_wait_plus_1);
    if (!err)
        join->waits_plus_1[wait_plus_1 - 1] = *ret_wait_plus_1;
    return err;
}

static int join_sample(struct join *join, uint32_t number)
{
    struct stack_table *table = &join->results->stacks;
    struct sample_labels labels = table->samples[number].labels;
    uint32_t stack = table->samples[number].stack;
    bool is_own = has_ended(join->ended, labels.process);
    int err = share_wait(join, labels.wait_plus_1, &labels.wait_plus_1);
    if (!err && is_own) {
        labels.process = join->ended->joined[labels.process];
        labels.thread_name = ended_names_get(&join->names, labels.thread_name);
        labels.tid = labels.goroutine = 0;
        err = share_stack(join, stack, &stack);
    }
    bool is_changed = is_own || labels.wait_plus_1 != table->samples[number].labels.wait_plus_1;
    join->results->counts.ended_are_joined |= is_own;
    return err || !is_changed ? err : stack_table_join_ended(table, number, stack, &labels);
}

static int join_samples(struct join *join)
{
    const struct stack_table *table = &join->results->stacks;
    size_t count = table->sample_count;
    int err = 0;
    for (uint32_t i = 0; i < count && !err; i++) {
        if (!is_new(join, i) && !counted_sample_is_empty(&table->samples[i]))
            err = join_sample(join, i);
    }
    return err;
}

static void rewrite_maker(void *context, struct objects *objects, size_t number,
                          struct counted_maker *row)
{
    const struct join *join = context;
    struct object_maker *maker = &row->maker;
    (void)objects;
    (void)number;
    if (!has_ended(join->ended, maker->process))
        return;
    maker->process = join->ended->joined[maker->process];
    maker->tid = maker->maker = 0;
    if (join->stacks_plus_1[maker->stack])
        maker->stack = join->stacks_plus_1[maker->stack] - 1;
}

static int join_makers(struct join *join)
{
    struct objects *objects = &join->results->objects;
    int err = 0;
    for (size_t i = 0; i < objects->maker_count && !err; i++) {
        uint32_t shared;
        if (has_ended(join->ended, objects->makers[i].maker.process))
            err = share_stack(join, objects->makers[i].maker.stack, &shared);
    }
    return err ? err : objects_rewrite(objects, rewrite_maker, join);
}

static int join_all(struct join *join, bool joins_samples)
{
    int err = choose_rows(join, joins_samples);
    if (!err)
        err = ended_names_find(join->results, &join->names);
    join->stack_count = join->results->stacks.stack_count;
    join->wait_count = join->results->waits.count;
    join->stacks_plus_1 = calloc(join->stack_count + 1, sizeof *join->stacks_plus_1);
    join->waits_plus_1 = calloc(join->wait_count + 1, sizeof *join->waits_plus_1);
    if (!err && (!join->stacks_plus_1 || !join->waits_plus_1))
        err = -ENOMEM;
    if (!err && joins_samples)
        err = join_samples(join);
    if (!err)
        err = join_makers(join);
    ended_names_free(&join->names);
    free(join->stacks_plus_1);
    free(join->waits_plus_1);
    free(join->addresses);
    return err;
}

int ended_processes_join(struct ended_processes *ended, struct results *results,
                         const struct counted_threads *threads, uint32_t epoch,
                         const struct renumber *in_use, bool joins_samples)
{
    struct join join = {.ended = ended, .results = results, .epoch = epoch, .in_use = in_use};
    size_t count = results->stacks.process_count;
    int err = renumber_init(&ended->rows,
                            count < results->elapsed_count ? count : results->elapsed_count);
    if (err)
        return err;
    ended->joined = calloc(ended->rows.count + 1, sizeof *ended->joined);
    if (!ended->joined)
        return -ENOMEM;
    find_ended(&join, threads);
    return renumber_kept(&ended->rows) ? join_all(&join, joins_samples) : 0;
}

/* ---- What goes ---- */

/* Keeps the rows that others were joined to, and those that something refers to. */
static void leave_out_in_use(struct ended_processes *ended, const struct results *results)
{
    const struct stack_table *table = &results->stacks;
    for (uint32_t i = 0; i < ended->rows.count; i++) {
        if (!table->processes[i].pid)
            leave_out(ended, i);
    }
    for (size_t i = 0; i < table->sample_count; i++)
        leave_out(ended, table->samples[i].labels.process);
    for (size_t i = 0; i < results->waits.count; i++) {
        leave_out(ended, results->waits.rows[i].process);
        leave_out(ended, results->waits.rows[i].owner_process); /* or WAIT_NO_OWNER */
        leave_out(ended, results->waits.rows[i].waker_process_plus_1 - 1);
    }
    for (size_t i = 0; i < results->deadlocks.row_count; i++)
        leave_out(ended, results->deadlocks.rows[i].process);
    for (size_t i = 0; i < results->objects.maker_count; i++)
        leave_out(ended, results->objects.makers[i].maker.process);
}

void ended_processes_drop(struct ended_processes *ended, struct results *results,
                          struct owners *owners)
{
    struct renumber *rows = &ended->rows;
    if (!rows->count)
        return;
    leave_out_in_use(ended, results);
    if (!renumber_kept(rows))
        return;
    stack_table_free_processes(&results->stacks, rows);
    for (uint32_t i = 0; i < rows->count; i++) {
        if (renumber_of(rows, i) == ROW_GONE)
            continue;
        elapsed_free(&results->elapsed[i]);
        results->elapsed[i] = (struct elapsed){.is_settled = true, .period_ns = 1};
        owners_forget_process(owners, i);
    }
}

void ended_processes_free(struct ended_processes *ended)
{
    renumber_free(&ended->rows);
    free(ended->joined);
}
