#include "count/stack_table.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stack_key {
    uint32_t space;
    const struct stack *stack;
};

static bool is_same_stack(const void *owner, uint32_t item, const void *key)
{
    const struct stack_table *table = owner;
    const struct counted_stack *known = &table->stacks[item];
    const struct stack_key *sought = key;
    return known->space == sought->space && known->cut == (uint32_t)sought->stack->cut &&
           known->depth == sought->stack->depth &&
           (!known->depth ||
            memcmp(&table->addresses[known->first_address], sought->stack->addresses,
                   known->depth * sizeof *table->addresses) == 0);
}

static uint64_t hash_of_stack(uint32_t space, uint32_t cut, const uint64_t *addresses, size_t depth)
{
    return hash_bytes(addresses, depth * sizeof *addresses, (uint64_t)space << 32 | cut);
}

int stack_table_add_stack(struct stack_table *table, uint32_t space, const struct stack *stack,
                          uint32_t *ret_stack)
{
    static const struct stack not_kept = {.cut = STACK_CUT_NOT_KEPT};
    struct stack_key key = {space, stack};
    uint64_t hash = hash_of_stack(space, (uint32_t)stack->cut, stack->addresses, stack->depth);
    *ret_stack = index_find(&table->stack_index, hash, is_same_stack, table, &key);
    if (*ret_stack != INDEX_NONE)
        return 0;
    if (table->is_full && stack->depth)
        return stack_table_add_stack(table, NO_SPACE, &not_kept, ret_stack);
    if (array_reserve(&table->addresses, &table->address_capacity,
                      table->address_count + stack->depth))
        return -ENOMEM;
    *ret_stack = (uint32_t)table->stack_count;
    const struct counted_stack row = {
        .space = space,
        .cut = (uint32_t)stack->cut,
        .first_address = table->address_count,
        .depth = stack->depth,
    };
    if (INDEX_APPEND(&table->stack_index, hash, &table->stacks, &table->stack_count,
                     &table->stack_capacity, row))
        return -ENOMEM;
    if (stack->depth)
        memcpy(&table->addresses[table->address_count], stack->addresses,
               stack->depth * sizeof *table->addresses);
    table->address_count += stack->depth;
    return 0;
}

/* Ends a list. */
#define LIST_END UINT32_MAX

/* Makes room for the list that the sample may be in. */
static int reserve_list(struct stack_table *table, const struct counted_sample *sample)
{
    size_t before = table->aside_capacity;
    if (!counted_sample_is_aside(sample))
        return 0;
    if (array_reserve(&table->asides, &table->aside_capacity, sample->labels.aside + 1u))
        return -ENOMEM;
    for (size_t i = before; i < table->aside_capacity; i++)
        table->asides[i] = LIST_END;
    return 0;
}

/* Gives the sample the present epoch. */
static void touch(struct stack_table *table, uint32_t sample)
{
    struct counted_sample *row = &table->samples[sample];
    row->epoch = table->epoch;
    if (row->next_aside || !counted_sample_is_aside(row))
        return;
    uint32_t *first = &table->asides[row->labels.aside];
    row->next_aside = *first;
    *first = sample + 1;
}

bool stack_table_take_aside(struct stack_table *table, uint32_t aside, uint32_t *ret_sample)
{
    uint32_t *first = aside < table->aside_capacity ? &table->asides[aside] : NULL;
    if (!first || *first == LIST_END)
        return false;
    *ret_sample = *first - 1;
    struct counted_sample *row = &table->samples[*ret_sample];
    *first = row->next_aside;
    row->next_aside = 0;
    return true;
}

/* Stack and labels. */
#define SAMPLE_KEY_BYTES offsetof(struct counted_sample, epoch)

static int intern_sample(struct stack_table *table, const struct counted_sample *sample,
                         uint32_t *ret_sample)
{
    *ret_sample = INDEX_FIND(&table->sample_index, SAMPLE_KEY_BYTES, sample, table->samples);
    if (*ret_sample != INDEX_NONE)
        return 0;
    if (reserve_list(table, sample) ||
        INDEX_INTERN(&table->sample_index, SAMPLE_KEY_BYTES, sample, &table->samples,
                     &table->sample_count, &table->sample_capacity, ret_sample))
        return -ENOMEM;
    table->samples[*ret_sample].epoch = table->epoch;
    table->samples[*ret_sample].serial = table->samples_added++;
    return 0;
}

static uint64_t hash_of_number(uint32_t number)
{
    return hash_bytes(&number, sizeof number, 0);
}

int stack_table_add_process(struct stack_table *table, pid_t pid, uint32_t name,
                            uint32_t *ret_process)
{
    uint32_t row = table->first_free, number = table->processes_added;
    while (row < table->process_count && !table->processes[row].is_free)
        row++;
    if (array_reserve(&table->processes, &table->process_capacity, row + 1u) ||
        index_add(&table->process_index, hash_of_number(number), row))
        return -ENOMEM;
    table->processes[row] = (struct counted_process){number, (uint32_t)pid, name, false};
    table->free_process_count -= row < table->process_count;
    table->process_count += row == table->process_count;
    table->processes_added++;
    table->first_free = row + 1;
    *ret_process = row;
    return 0;
}

uint32_t stack_table_find_process(const struct stack_table *table, uint32_t number)
{
    return INDEX_FIND(&table->process_index, sizeof number, &number, table->processes);
}

void stack_table_free_processes(struct stack_table *table, const struct renumber *rows)
{
    index_clear(&table->process_index, table->process_count);
    table->first_free = 0;
    table->free_process_count = 0;
    for (uint32_t i = 0; i < table->process_count; i++) {
        struct counted_process *process = &table->processes[i];
        process->is_free = process->is_free || renumber_of(rows, i) != ROW_GONE;
        table->free_process_count += process->is_free;
        if (process->is_free)
            *process = (struct counted_process){.is_free = true};
        else /* there is room, because there were as many before */
            index_add(&table->process_index, hash_of_number(process->number), i);
    }
}

int stack_table_add(struct stack_table *table, uint32_t space, const struct stack *stack,
                    const struct sample_labels *labels, uint64_t count, uint64_t time_ns,
                    uint32_t *ret_sample)
{
    struct counted_sample sample = {.labels = *labels};
    int err = stack_table_add_stack(table, space, stack, &sample.stack);
    if (!err)
        err = intern_sample(table, &sample, ret_sample);
    if (!err)
        stack_table_count(table, *ret_sample, count, time_ns, 0);
    return err;
}

int stack_table_in_state(struct stack_table *table, uint32_t sample, enum thread_state state,
                         uint32_t *ret_sample)
{
    struct counted_sample other = {.stack = table->samples[sample].stack,
                                   .labels = table->samples[sample].labels};
    other.labels.state = state;
    if (!thread_state_waits(state)) {
        other.labels.syscall_number = -1;
        other.labels.wait_channel = other.labels.kernel_stack = other.labels.wait_plus_1 = 0;
    }
    return intern_sample(table, &other, ret_sample);
}

int stack_table_in_wait(struct stack_table *table, uint32_t sample, uint32_t wait_plus_1,
                        uint32_t *ret_sample)
{
    struct counted_sample other = {.stack = table->samples[sample].stack,
                                   .labels = table->samples[sample].labels};
    other.labels.wait_plus_1 = wait_plus_1;
    return intern_sample(table, &other, ret_sample);
}

int stack_table_aside(struct stack_table *table, uint32_t sample, uint32_t aside,
                      uint32_t *ret_sample)
{
    struct counted_sample other = {.stack = table->samples[sample].stack,
                                   .labels = table->samples[sample].labels};
    other.labels.aside = aside;
    return intern_sample(table, &other, ret_sample);
}

static void add_sleeps(struct counted_sample *sample, uint64_t sleeps)
{
    sample->sleeps = sleeps < UINT64_MAX - sample->sleeps ? sample->sleeps + sleeps : UINT64_MAX;
}

int stack_table_join_ended(struct stack_table *table, uint32_t sample, uint32_t stack,
                           const struct sample_labels *labels)
{
    struct counted_sample other = {.stack = stack, .labels = *labels};
    uint32_t joined;
    other.labels.has_ended = 1;
    int err = intern_sample(table, &other, &joined);
    if (err)
        return err;
    if (joined == sample)
        return 0;
    struct counted_sample *from = &table->samples[sample], *to = &table->samples[joined];
    to->count += from->count;
    to->time_ns += from->time_ns;
    to->part_ns += from->part_ns;
    to->waited_ticks += from->waited_ticks;
    add_sleeps(to, from->sleeps);
    counted_sample_empty(from);
    from->joined_plus_1 = joined + 1;
    return 0;
}

void counted_sample_empty(struct counted_sample *sample)
{
    sample->count = sample->time_ns = sample->part_ns = 0;
    sample->sleeps = 0;
    sample->waited_ticks = 0;
}

bool counted_sample_is_empty(const struct counted_sample *sample)
{
    return !sample->count && !sample->time_ns && !sample->part_ns && !sample->sleeps &&
           sample->waited_ticks <= 0;
}

void stack_table_count(struct stack_table *table, uint32_t sample, uint64_t count, uint64_t time_ns,
                       uint64_t part_ns)
{
    table->samples[sample].count += count;
    table->samples[sample].time_ns += time_ns;
    table->samples[sample].part_ns += part_ns;
    touch(table, sample);
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

void stack_table_move(struct stack_table *table, uint32_t from, uint32_t to, uint64_t count,
                      uint64_t time_ns, uint64_t part_ns)
{
    struct counted_sample *source = &table->samples[from];
    count = at_most(count, source->count);
    time_ns = at_most(time_ns, source->time_ns);
    part_ns = at_most(part_ns, source->part_ns);
    source->count -= count;
    source->time_ns -= time_ns;
    source->part_ns -= part_ns;
    if (!source->count && !source->time_ns)
        source->joined_plus_1 = to + 1;
    touch(table, from);
    stack_table_count(table, to, count, time_ns, part_ns);
}

void stack_table_count_sleeps(struct stack_table *table, uint32_t sample, uint64_t sleeps)
{
    add_sleeps(&table->samples[sample], sleeps);
    touch(table, sample);
}

void stack_table_take_sleeps(struct stack_table *table, uint32_t sample, uint64_t sleeps)
{
    uint64_t *sum = &table->samples[sample].sleeps;
    *sum = sleeps < *sum ? *sum - sleeps : 0;
}

void stack_table_count_waited(struct stack_table *table, uint32_t sample, double ticks)
{
    table->samples[sample].waited_ticks += ticks;
    touch(table, sample);
}

/* Stacks and their addresses are in the same order. */
static void move_stacks(struct stack_table *table, const struct renumber *rows)
{
    size_t kept = 0, addresses = 0;
    for (size_t i = 0; i < table->stack_count; i++) {
        struct counted_stack *stack = &table->stacks[i];
        if (renumber_of(rows, (uint32_t)i) == ROW_GONE)
            continue;
        if (stack->depth)
            memmove(&table->addresses[addresses], &table->addresses[stack->first_address],
                    stack->depth * sizeof *table->addresses);
        stack->first_address = addresses;
        addresses += stack->depth;
        kept++;
    }
    renumber_move(rows, table->stacks, sizeof *table->stacks);
    table->stack_count = kept;
    table->address_count = addresses;
}

static void move_samples(struct stack_table *table, const struct renumber *stacks,
                         const struct renumber *rows, const struct renumber *waits,
                         const struct renumber *label_sets)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->sample_count; i++) {
        struct counted_sample *sample = &table->samples[i];
        if (renumber_of(rows, (uint32_t)i) == ROW_GONE)
            continue;
        sample->stack = renumber_of(stacks, sample->stack);
        sample->labels.wait_plus_1 = renumber_plus_1(waits, sample->labels.wait_plus_1);
        sample->labels.label_set_plus_1 =
            renumber_plus_1(label_sets, sample->labels.label_set_plus_1);
        sample->joined_plus_1 = renumber_plus_1(rows, sample->joined_plus_1);
        kept++;
    }
    renumber_move(rows, table->samples, sizeof *table->samples);
    table->sample_count = kept;
}

/* Rebuilds the lists. */
static void list_rows(struct stack_table *table)
{
    for (size_t i = 0; i < table->aside_capacity; i++)
        table->asides[i] = LIST_END;
    for (size_t i = 0; i < table->sample_count; i++) {
        struct counted_sample *row = &table->samples[i];
        if (!row->next_aside)
            continue;
        row->next_aside = table->asides[row->labels.aside];
        table->asides[row->labels.aside] = (uint32_t)i + 1;
    }
}

/* Rebuilds the indexes without allocating, because there are no more rows than before. */
static void index_rows(struct stack_table *table)
{
    index_clear(&table->stack_index, table->stack_count);
    for (size_t i = 0; i < table->stack_count; i++) {
        const struct counted_stack *stack = &table->stacks[i];
        index_add(&table->stack_index,
                  hash_of_stack(stack->space, stack->cut, &table->addresses[stack->first_address],
                                stack->depth),
                  (uint32_t)i);
    }
    INDEX_AGAIN(&table->sample_index, SAMPLE_KEY_BYTES, table->samples, table->sample_count);
}

void stack_table_keep(struct stack_table *table, const struct renumber *stacks,
                      const struct renumber *samples, const struct renumber *waits,
                      const struct renumber *label_sets)
{
    move_stacks(table, stacks);
    move_samples(table, stacks, samples, waits, label_sets);
    index_rows(table);
    list_rows(table);
    table->times_renumbered++;
    array_trim(&table->addresses, &table->address_capacity, table->address_count);
    array_trim(&table->stacks, &table->stack_capacity, table->stack_count);
    array_trim(&table->samples, &table->sample_capacity, table->sample_count);
}

size_t stack_table_bytes(const struct stack_table *table)
{
    return table->process_count * sizeof *table->processes +
           table->address_count * sizeof *table->addresses +
           table->stack_count * sizeof *table->stacks +
           table->sample_count * sizeof *table->samples +
           (table->stack_index.slot_count + table->sample_index.slot_count) *
               sizeof(struct index_slot);
}

void stack_table_free(struct stack_table *table)
{
    free(table->processes);
    index_free(&table->process_index);
    free(table->addresses);
    free(table->stacks);
    free(table->samples);
    free(table->asides);
    index_free(&table->stack_index);
    index_free(&table->sample_index);
    *table = (struct stack_table){0};
}
