#include "recorder/copy.h"
#include "base/array.h"
#include "mapping/spaces.h"

#include <errno.h>
#include <string.h>

/* Appends the rows that have not been copied yet. There is room for them. Returns 0. */
static int append_rows(void *rows, size_t *count, const void *from, size_t from_count,
                       size_t row_bytes)
{
    size_t at = *count * row_bytes;
    if (from_count > *count)
        memcpy((char *)rows + at, (const char *)from + at, from_count * row_bytes - at);
    *count = from_count;
    return 0;
}

/* Makes room for the new rows, and appends them. The names are those of the fields in both structs.
 * Evaluates to 0 or -ENOMEM. */
#define COPY_ROWS(to, from, rows, count, capacity)                                                 \
    (array_reserve(&(to)->rows, &(to)->capacity, (from)->count)                                    \
         ? -ENOMEM                                                                                 \
         : append_rows((to)->rows, &(to)->count, (from)->rows, (from)->count, sizeof *(to)->rows))

static int copy_stacks(struct stack_table *to, const struct stack_table *from)
{
    to->sample_count = to->process_count = 0; /* these rows change, so all are copied again */
    to->epoch = from->epoch;
    to->processes_added = from->processes_added;
    if (COPY_ROWS(to, from, processes, process_count, process_capacity) ||
        COPY_ROWS(to, from, addresses, address_count, address_capacity) ||
        COPY_ROWS(to, from, stacks, stack_count, stack_capacity) ||
        COPY_ROWS(to, from, samples, sample_count, sample_capacity))
        return -ENOMEM;
    return 0;
}

static int copy_waits(struct waits *to, const struct waits *from)
{
    to->limited = from->limited;
    return COPY_ROWS(to, from, rows, count, capacity);
}

static int copy_deadlocks(struct deadlocks *to, const struct deadlocks *from)
{
    to->count = from->count;
    return COPY_ROWS(to, from, rows, row_count, capacity);
}

static int copy_strings(struct strings *to, const struct strings *from)
{
    if (array_reserve(&to->items, &to->capacity, from->count))
        return -ENOMEM;
    for (; to->count < from->count; to->count++) {
        to->items[to->count] = strdup(from->items[to->count]);
        if (!to->items[to->count])
            return -ENOMEM;
    }
    to->text_bytes = from->text_bytes;
    return 0;
}

static int copy_label_sets(struct label_sets *to, const struct label_sets *from)
{
    if (COPY_ROWS(to, from, labels, label_count, label_capacity) ||
        COPY_ROWS(to, from, sets, set_count, set_capacity))
        return -ENOMEM;
    return copy_strings(&to->strings, &from->strings);
}

/* They are seldom renumbered, so that they have a count of their own. */
static int copy_runtime_frames(struct runtime_frames *to, const struct runtime_frames *from)
{
    if (to->times_renumbered != from->times_renumbered) {
        to->count = 0;
        strings_free(&to->strings);
    }
    to->times_renumbered = from->times_renumbered;
    int err = COPY_ROWS(to, from, items, count, capacity);
    return err ? err : copy_strings(&to->strings, &from->strings);
}

/* Copies what profiles use: not the ticks and waits that are still open. */
static int copy_elapsed(struct results *to, const struct results *from)
{
    to->parallelism = from->parallelism;
    to->elapsed_count = 0; /* these rows change */
    if (array_reserve(&to->elapsed, &to->elapsed_capacity, from->elapsed_count))
        return -ENOMEM;
    for (; to->elapsed_count < from->elapsed_count; to->elapsed_count++) {
        struct elapsed *process = &to->elapsed[to->elapsed_count];
        *process = from->elapsed[to->elapsed_count];
        process->found_none = NULL;
        process->waits = NULL;
        process->wait_count = 0;
    }
    return 0;
}

static int copy_idle(struct results *to, const struct results *from)
{
    to->idle_tid_count = 0; /* these rows change */
    return COPY_ROWS(to, from, idle_tids, idle_tid_count, idle_tid_capacity);
}

/* Frees memory that the rows will no longer need. */
#define TRIM_ROWS(to, from, rows, count, capacity)                                                 \
    array_trim(&(to)->rows, &(to)->capacity, (from)->count)

/* Forgets the copied rows, because their numbers have changed. There may be far fewer now. */
static void forget_rows(struct results *to, const struct results *from)
{
    to->stacks.address_count = to->stacks.stack_count = 0;
    to->waits.count = 0;
    to->deadlocks.row_count = 0;
    to->label_sets.label_count = to->label_sets.set_count = 0;
    TRIM_ROWS(&to->stacks, &from->stacks, addresses, address_count, address_capacity);
    TRIM_ROWS(&to->stacks, &from->stacks, stacks, stack_count, stack_capacity);
    TRIM_ROWS(&to->stacks, &from->stacks, samples, sample_count, sample_capacity);
    TRIM_ROWS(&to->waits, &from->waits, rows, count, capacity);
    TRIM_ROWS(&to->label_sets, &from->label_sets, labels, label_count, label_capacity);
    TRIM_ROWS(&to->label_sets, &from->label_sets, sets, set_count, set_capacity);
    strings_free(&to->label_sets.strings);
    strings_free(&to->strings);
}

int copy_update(struct copy *copy, const struct results *results,
                const struct sampling_state *state)
{
    struct results *to = &copy->results;
    copy->counts = state->counts;
    copy->until_ns = state->now_ns;
    to->counts = results->counts;
    memcpy(to->object_counts, results->object_counts, sizeof to->object_counts);
    spaces_free(&to->spaces);
    if (to->stacks.times_renumbered != results->stacks.times_renumbered)
        forget_rows(to, results);
    to->stacks.times_renumbered = results->stacks.times_renumbered;
    if (copy_stacks(&to->stacks, &results->stacks) || copy_waits(&to->waits, &results->waits) ||
        copy_deadlocks(&to->deadlocks, &results->deadlocks) ||
        objects_copy(&results->objects, &to->objects) ||
        copy_label_sets(&to->label_sets, &results->label_sets) ||
        copy_runtime_frames(&to->runtime_frames, &results->runtime_frames) ||
        copy_elapsed(to, results) || copy_strings(&to->strings, &results->strings) ||
        copy_idle(to, results) ||
        (results->timeline.is_ring && timeline_copy(&results->timeline, &to->timeline)) ||
        spaces_copy(&results->spaces, &to->spaces))
        return -ENOMEM;
    return 0;
}
