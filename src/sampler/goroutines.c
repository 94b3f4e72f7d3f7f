/* A pass reads all goroutines in the order of their addresses, because neighbours are read with one
 * call. A program may have a million of them, so they are sorted in parts of LISTED_AT_ONCE:
 * goroutines that were made together are close together. A pass may take several ticks; each
 * goroutine then represents the time since it was last read. The stack of a parked goroutine is
 * copied only if the goroutine has run since the last copy. After the copy the goroutine is read
 * again, because it may have continued meanwhile. */
#include "sampler/goroutines.h"
#include "base/array.h"
#include "base/clock.h"
#include "observe/ptrace_source.h"
#include "proc/memory.h"
#include "runtime/go/labels.h"

#include <errno.h>
#include <stdlib.h>

/* The part of the time between ticks that reading may take: in the first pass, which copies all
 * stacks, and in later passes. */
#define FIRST_PART_OF_PERIOD 5
#define PART_OF_PERIOD 100
/* The same, as an absolute time, at the end of a recording and of a dump. */
#define FINISH_NS 1000000000u
#define DUMP_NS 10000000000u
#define FINISH_PART_NS 1000000u
#define DUMP_TRIES 10

#define ROOM_BYTES (64u << 10)
#define GAP_BYTES 2048u /* reading a gap of this size is cheaper than a second read */
#define CHANGES_UNDER_WAY_MAX 8
#define REPORTED_EACH_NS 500000000u /* interval of reports that all are where they were */
#define LISTED_AT_ONCE 1024u

static pid_t live_tid(const struct sampled_process *process)
{
    return process->threads.count ? process->threads.items[0].tid : process->process.pid;
}

static int compare_addresses(const void *a, const void *b)
{
    const struct goroutine_address *left = a, *right = b;
    return ORDER(left->address, right->address);
}

/* ---- The list ---- */

static int add(struct sampled_goroutines *goroutines, uint64_t address)
{
    if (array_reserve(&goroutines->items, &goroutines->capacity, goroutines->count + 1) ||
        array_reserve(&goroutines->order, &goroutines->order_capacity, goroutines->count + 1))
        return -ENOMEM;
    goroutines->items[goroutines->count] =
        (struct sampled_goroutine){.read_ns = goroutines->pass_before_ns};
    goroutines->order[goroutines->count] =
        (struct goroutine_address){address, (uint32_t)goroutines->count};
    goroutines->count++;
    return 0;
}

static void sort_from(struct sampled_goroutines *goroutines, size_t first)
{
    if (goroutines->count > first)
        qsort(goroutines->order + first, goroutines->count - first, sizeof *goroutines->order,
              compare_addresses);
}

/* Lists new goroutines, as many as a tick has time for: allgs only grows (allgadd in
 * runtime/proc.go). They come last in the order. */
static int list(struct sampled_goroutines *goroutines, const struct sampled_process *process)
{
    uint64_t first, pointers[LISTED_AT_ONCE];
    size_t before = goroutines->count, room = LISTED_AT_ONCE - before % LISTED_AT_ONCE, got = 0;
    size_t wanted = goroutines->end - before < room ? goroutines->end - before : room;
    pid_t tid = live_tid(process);
    if (memory_read_word(tid, &process->areas, goroutines->place.first, &first))
        got = memory_read(tid, &process->areas, first + before * sizeof *pointers, pointers,
                          wanted * sizeof *pointers) /
              sizeof *pointers;
    for (size_t i = 0; i < got; i++) {
        int err = add(goroutines, pointers[i] < MEMORY_END ? pointers[i] : 0);
        if (err)
            return err;
    }
    sort_from(goroutines, before);
    if (got < wanted)
        goroutines->end = goroutines->count;
    return 0;
}

/* Sorts the last part of the order, to which each listing may have added only a few goroutines. */
static void sort_last_part(struct sampled_goroutines *goroutines)
{
    size_t listed = goroutines->count - goroutines->count_before;
    size_t part = goroutines->count % LISTED_AT_ONCE;
    if (listed && listed < part)
        sort_from(goroutines, goroutines->count - part);
    goroutines->count_before = goroutines->count;
}

/* ---- Reports ---- */

static int send(struct sampler *sampler, struct sampled_process *process)
{
    struct sampled_goroutines *goroutines = &process->goroutines;
    struct message message = {.kind = MESSAGE_GOROUTINES};
    if (!goroutines->changes)
        return 0;
    goroutines->changes->left_out = goroutines->left_out;
    goroutines->changes->unreadable = goroutines->unreadable_before;
    message.goroutines.process = process->number;
    message.goroutines.process_id = process->process.pid;
    message.goroutines.tid = live_tid(process);
    message.goroutines.round_ns = process->turns.round_ns;
    message.goroutines.program = program_hold(process->program);
    message.goroutines.changes = goroutines->changes;
    int err = channel_send(sampler->channel, &message);
    if (err)
        program_release(message.goroutines.program);
    else
        goroutines->changes = NULL;
    return err;
}

static bool is_behind(const struct sampler *sampler)
{
    return channel_goroutine_changes(sampler->channel) >= CHANGES_UNDER_WAY_MAX;
}

static struct goroutine_changes *changes_of(struct sampled_goroutines *goroutines)
{
    if (!goroutines->changes)
        goroutines->changes = calloc(1, sizeof *goroutines->changes);
    return goroutines->changes;
}

/* Adds a change, with room for the stack. Returns 0, -ENOMEM, or -EAGAIN if the worker is behind.
 */
static int add_change(struct sampler *sampler, struct sampled_process *process,
                      const struct goroutine_seen *seen, unsigned char **ret_stack)
{
    struct sampled_goroutines *goroutines = &process->goroutines;
    int err = changes_of(goroutines) ? goroutine_changes_add(goroutines->changes, seen, ret_stack)
                                     : -ENOMEM;
    if (err != -ENOSPC)
        return err;
    err = send(sampler, process);
    if (err || is_behind(sampler))
        return err ? err : -EAGAIN;
    return changes_of(goroutines) ? goroutine_changes_add(goroutines->changes, seen, ret_stack)
                                  : -ENOMEM;
}

/* ---- One goroutine ---- */

static bool read_again(const struct sampled_process *process, uint64_t address,
                       struct goroutine *ret_goroutine)
{
    return goroutine_read(process->goroutines.place.layout, address, live_tid(process),
                          &process->areas, ret_goroutine);
}

/* Copies the labels of the goroutine that was added last. */
static int copy_labels(struct sampled_process *process, const struct goroutine *goroutine)
{
    const struct go_layout *layout = process->goroutines.place.layout;
    char text[GO_LABELS_BYTES_MAX];
    size_t bytes = goroutine->labels ? go_labels_read(layout, goroutine->labels, live_tid(process),
                                                      &process->areas, text)
                                     : 0;
    return bytes ? goroutine_changes_label(process->goroutines.changes, text, bytes) : 0;
}

/* Copies the stack of a parked goroutine. If it has moved meanwhile, the copy is useless. */
static int copy_stack(struct sampler *sampler, struct sampled_process *process,
                      struct sampled_goroutine *known, struct goroutine_seen *seen)
{
    const struct goroutine *goroutine = &seen->goroutine;
    uint64_t bytes = goroutine->stack_high - goroutine->sp;
    struct goroutine again;
    unsigned char *stack;
    seen->stack_bytes =
        bytes < GOROUTINE_CHANGES_STACK_BYTES ? (size_t)bytes : GOROUTINE_CHANGES_STACK_BYTES;
    int err = add_change(sampler, process, seen, &stack);
    if (err)
        return err;
    struct goroutine_changes *changes = process->goroutines.changes;
    struct goroutine_seen *added = &changes->items[changes->count - 1];
    added->stack_bytes =
        memory_read(live_tid(process), &process->areas, goroutine->sp, stack, seen->stack_bytes);
    const struct parked_goroutine parked = {.layout = process->goroutines.place.layout,
                                            .address = seen->address,
                                            .goroutine = goroutine,
                                            .stack = stack,
                                            .stack_bytes = added->stack_bytes,
                                            .tid = live_tid(process),
                                            .areas = &process->areas};
    go_wait_read(&parked, &added->wait);
    const struct goroutine_rest rest = goroutine_rest(goroutine);
    err = copy_labels(process, goroutine);
    if (err)
        return err;
    added = &changes->items[changes->count - 1];
    bool was_read = read_again(process, seen->address, &again);
    const struct goroutine_rest rest_again =
        was_read ? goroutine_rest(&again) : (struct goroutine_rest){0};
    added->is_parked = was_read && goroutine_where(&again) == GOROUTINE_PARKED &&
                       goroutine_has_stayed(&rest, &rest_again);
    added->has_moved = !added->is_parked;
    known->rest = added->is_parked ? rest : (struct goroutine_rest){0};
    return 0;
}

/* Reports the goroutine if it has changed. Returns 0, -ENOMEM, or -EAGAIN if it must be looked at
 * later. */
static int take(struct sampler *sampler, struct sampled_process *process,
                const struct goroutine_address *place, const struct goroutine *goroutine,
                uint64_t at_ns)
{
    struct sampled_goroutine *known = &process->goroutines.items[place->number];
    const struct goroutine_rest rest = goroutine_rest(goroutine);
    enum goroutine_where where = goroutine_where(goroutine);
    struct goroutine_seen seen = {.number = place->number,
                                  .is_parked = where == GOROUTINE_PARKED,
                                  .before_ns = known->read_ns,
                                  .at_ns = at_ns,
                                  .address = place->address,
                                  .goroutine = *goroutine};
    unsigned char *stack;
    int err = 0;
    /* A goroutine does not move on while its stack is being moved. */
    if (where == GOROUTINE_MOVING && known->rest.id == goroutine->id)
        return 0;
    bool is_wanted = sampler->options->is_dump && where == GOROUTINE_ON_THREAD;
    if (where == GOROUTINE_PARKED && !goroutine_has_stayed(&known->rest, &rest)) {
        err = copy_stack(sampler, process, known, &seen);
    } else if (where != GOROUTINE_PARKED && (known->rest.id || is_wanted)) {
        err = add_change(sampler, process, &seen, &stack);
        if (!err)
            known->rest = (struct goroutine_rest){0};
    }
    if (!err)
        known->read_ns = at_ns;
    return err;
}

/* A dump has no later pass: tries again to read a goroutine that has moved meanwhile. */
static int take_again(struct sampler *sampler, struct sampled_process *process,
                      const struct goroutine_address *place, struct goroutine *goroutine)
{
    const struct sampled_goroutine *known = &process->goroutines.items[place->number];
    int err = 0;
    for (int i = 0; i < DUMP_TRIES && !err && goroutine_where(goroutine) == GOROUTINE_PARKED &&
                    !known->rest.id && read_again(process, place->address, goroutine);
         i++)
        err = take(sampler, process, place, goroutine, clock_now_ns(&sampler->clock));
    return err;
}

/* ---- A pass ---- */

/* How many goroutines from index `first` of the order on are read at once. *ret_bytes: the size of
 * that memory. */
static size_t neighbours(const struct sampled_goroutines *goroutines, size_t first,
                         uint64_t *ret_bytes)
{
    const struct goroutine_address *order = goroutines->order;
    uint64_t each = goroutine_bytes(goroutines->place.layout);
    size_t next = first + 1;
    while (next < goroutines->count &&
           order[next].address - order[next - 1].address <= each + GAP_BYTES &&
           order[next].address + each - order[first].address <= ROOM_BYTES)
        next++;
    *ret_bytes = order[next - 1].address + each - order[first].address;
    return next - first;
}

/* Reads the next goroutines, which are neighbours. */
static int read_next(struct sampler *sampler, struct sampled_process *process)
{
    struct sampled_goroutines *goroutines = &process->goroutines;
    const struct go_layout *layout = goroutines->place.layout;
    const struct goroutine_address *first = &goroutines->order[goroutines->next];
    uint64_t bytes, at_ns = clock_now_ns(&sampler->clock);
    size_t count = neighbours(goroutines, goroutines->next, &bytes);
    size_t got =
        memory_read(live_tid(process), &process->areas, first->address, goroutines->room, bytes);
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        uint64_t at = first[i].address - first->address;
        struct goroutine goroutine;
        if (at + goroutine_bytes(layout) <= got) {
            goroutine_parse(layout, goroutines->room + at, &goroutine);
            err = take(sampler, process, &first[i], &goroutine, at_ns);
            if (!err && sampler->options->is_dump)
                err = take_again(sampler, process, &first[i], &goroutine);
            goroutines->unreadable += !err && goroutine_where(&goroutine) == GOROUTINE_SENSELESS;
        } else {
            goroutines->unreadable++;
        }
        goroutines->next += !err;
    }
    return err;
}

static int begin_pass(struct sampler *sampler, struct sampled_process *process)
{
    struct sampled_goroutines *goroutines = &process->goroutines;
    uint64_t count;
    if (!goroutines->room)
        goroutines->room = malloc(ROOM_BYTES);
    if (!goroutines->room)
        return -ENOMEM;
    sort_last_part(goroutines);
    if (memory_read_word(live_tid(process), &process->areas, goroutines->place.count, &count)) {
        goroutines->end = count < GOROUTINES_MAX ? count : GOROUTINES_MAX;
        goroutines->left_out = count - goroutines->end;
    }
    goroutines->pass_before_ns = goroutines->pass_ns;
    goroutines->pass_ns = clock_now_ns(&sampler->clock);
    goroutines->next = 0;
    goroutines->unreadable = 0;
    goroutines->is_reading = true;
    return 0;
}

static bool is_over(const struct sampled_goroutines *goroutines)
{
    return goroutines->next >= goroutines->count && goroutines->count >= goroutines->end;
}

static int report_seen(struct sampler *sampler, struct sampled_process *process, uint64_t seen_ns)
{
    struct sampled_goroutines *goroutines = &process->goroutines;
    if (!changes_of(goroutines))
        return -ENOMEM;
    goroutines->changes->seen_ns = goroutines->reported_ns = seen_ns;
    return send(sampler, process);
}

int goroutines_report(struct sampler *sampler, struct sampled_process *process)
{
    return process->goroutines.place.layout && process->program
               ? report_seen(sampler, process, clock_now_ns(&sampler->clock))
               : 0;
}

/* Everything that a pass reads is from after its begin. If nothing has changed, the worker need not
 * know immediately. */
static int end_pass(struct sampler *sampler, struct sampled_process *process)
{
    struct sampled_goroutines *goroutines = &process->goroutines;
    goroutines->is_reading = false;
    goroutines->has_read_all = true;
    goroutines->unreadable_before = goroutines->unreadable;
    bool is_urgent = goroutines->changes || sampler->clock.end_ns ||
                     goroutines->pass_ns - goroutines->reported_ns >= REPORTED_EACH_NS;
    return is_urgent ? report_seen(sampler, process, goroutines->pass_ns) : 0;
}

/* Returns 0, -ENOMEM, or -EAGAIN if the worker is behind. */
static int read_until(struct sampler *sampler, struct sampled_process *process, uint64_t until_ns)
{
    struct sampled_goroutines *goroutines = &process->goroutines;
    int err = goroutines->is_reading ? 0 : begin_pass(sampler, process);
    while (!err && !is_over(goroutines)) {
        err = is_behind(sampler)                     ? -EAGAIN
              : goroutines->next < goroutines->count ? read_next(sampler, process)
                                                     : list(goroutines, process);
        if (!err && monotonic_ns() >= until_ns)
            break;
    }
    if (!err && is_over(goroutines))
        return end_pass(sampler, process);
    int send_err = send(sampler, process);
    return err ? err : send_err;
}

int goroutines_update(struct sampler *sampler, struct sampled_process *process)
{
    struct sampled_goroutines *goroutines = &process->goroutines;
    unsigned part = goroutines->has_read_all ? PART_OF_PERIOD : FIRST_PART_OF_PERIOD;
    if (!goroutines->place.layout || !process->program)
        return 0;
    int err = read_until(sampler, process, monotonic_ns() + sampler->clock.ticks.period_ns / part);
    return err == -EAGAIN ? 0 : err;
}

int goroutines_begin(struct sampler *sampler, struct sampled_process *process,
                     const struct go_place *place)
{
    struct sampled_goroutines *goroutines = &process->goroutines;
    uint64_t opened_ns = process->span.opened_ns, start_ns = sampler->clock.ticks.start_ns;
    goroutines->place = *place;
    goroutines->pass_ns = process->span.has_before || opened_ns < start_ns ? opened_ns : start_ns;
    if (goroutines->pass_ns < start_ns)
        goroutines->pass_ns = start_ns;
    return sampler->options->is_dump ? goroutines_finish(sampler, process)
                                     : goroutines_update(sampler, process);
}

int goroutines_finish(struct sampler *sampler, struct sampled_process *process)
{
    struct sampled_goroutines *goroutines = &process->goroutines;
    uint64_t until_ns = monotonic_ns() + (sampler->options->is_dump ? DUMP_NS : FINISH_NS);
    if (!goroutines->place.layout || !process->program || process->has_exited)
        return 0;
    bool is_last = !goroutines->is_reading;
    for (;;) {
        uint64_t part_ns = monotonic_ns() + FINISH_PART_NS;
        int err = read_until(sampler, process, part_ns < until_ns ? part_ns : until_ns);
        /* Threads whose stops were requested before need not wait until all goroutines are read. */
        if (ptrace_source_pending(sampler->stopped))
            ptrace_source_let_go(sampler->stopped, 0);
        if (err != -EAGAIN && (err || (!goroutines->is_reading && is_last)))
            return err;
        is_last = is_last || !goroutines->is_reading;
        if (monotonic_ns() >= until_ns)
            return goroutines_report(sampler, process);
        if (err == -EAGAIN)
            channel_await_worker(sampler->channel);
    }
}

void goroutines_forget(struct sampled_goroutines *goroutines)
{
    free(goroutines->items);
    free(goroutines->order);
    free(goroutines->room);
    goroutine_changes_free(goroutines->changes);
    *goroutines = (struct sampled_goroutines){0};
}
