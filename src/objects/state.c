#include "objects/state.h"
#include "base/clock.h"
#include "base/upper_bound.h"

/* After this many stacks of a program, further ones hardly need new data. */
#define HURRIED_MAX 64
#define AREAS_EACH_NS 10000000u
#define AREAS_PART_OF_TIME 100

struct object_process *collector_process(const struct collector *collector, pid_t pid)
{
    const struct collected_process *found =
        FIND_SORTED(collector->processes, collector->process_count, pid, (uint32_t)pid);
    return found ? found->process : NULL;
}

void object_read_areas(struct object_process *process, int maps_fd)
{
    uint64_t now_ns = monotonic_ns();
    stack_areas_read(&process->areas, maps_fd);
    process->areas_reading = (struct throttle){now_ns, monotonic_ns() - now_ns};
}

enum program_match object_program_match(struct object_process *process, uint64_t exec_ns,
                                        uint64_t at_ns)
{
    struct program_span *span = &process->span;
    if (!process->program_count)
        return PROGRAM_LATER;
    uint64_t now_ns = monotonic_ns();
    if (exec_ns > span->current_ns && !process->programs[0].over_ns &&
        program_is_current(process->programs[0].program))
        span->current_ns = now_ns;
    return program_span_match(span, exec_ns, at_ns);
}

bool object_read_areas_again(struct object_process *process)
{
    bool may_read =
        process->program_count &&
        throttle_allows(&process->areas_reading, monotonic_ns(), AREAS_EACH_NS, AREAS_PART_OF_TIME);
    if (may_read)
        object_read_areas(process, process->programs[0].program->maps_fd);
    return may_read;
}

const struct stack_area *object_area(struct object_process *process, uint64_t address)
{
    const struct stack_area *area = stack_areas_find(&process->areas, address);
    return area || !object_read_areas_again(process) ? area
                                                     : stack_areas_find(&process->areas, address);
}

void collector_share_out(struct collector *collector)
{
    size_t shares = 0;
    for (size_t i = 0; i < collector->process_count; i++) {
        struct object_process *process = collector->processes[i].process;
        shares += process->was_short || atomic_load(&process->queued);
        process->was_short = false;
    }
    collector->shares = shares ? shares : 1;
    collector->is_short = false;
}

bool collector_has_room(struct collector *collector, struct object_process *process,
                        size_t stack_bytes)
{
    bool has_room = news_queue_has_room(&process->queued, stack_bytes, collector->shares);
    process->was_short |= !has_room;
    collector->is_short |= !has_room;
    return has_room;
}

struct snapshot *collector_take_snapshot(struct collector *collector,
                                         struct object_process *process, size_t stack_bytes)
{
    static const struct stack_place no_place = {0};
    if (!collector_has_room(collector, process, stack_bytes))
        return NULL;
    struct snapshot *snapshot =
        snapshot_pool_take(collector->queue->snapshots, stack_bytes, &no_place);
    process->was_short |= !snapshot;
    collector->is_short |= !snapshot;
    return snapshot;
}

void collector_give_snapshot(struct collector *collector, struct snapshot *snapshot)
{
    if (snapshot)
        snapshot_pool_give(collector->queue->snapshots, snapshot, false);
}

/* The first stacks of a program are urgent, because the worker must read what they need, such as
 * libraries, while the program still runs. */
static void hurry(struct collector *collector, struct object_process *process)
{
    if (process->hurried == HURRIED_MAX)
        return;
    process->hurried++;
    collector->queue->bell.is_hurried = true;
}

int collector_report(struct collector *collector, struct object_process *process,
                     struct object_news *news)
{
    struct news_message message = {.kind = NEWS_OBJECT,
                                   .after = collector->after,
                                   .queued = &process->queued,
                                   .object = *news};
    message.object.process = process->number;
    message.object.told_ns = collector->now_ns;
    int err = news_queue_put(collector->queue, &message);
    if (!err && news->snapshot)
        hurry(collector, process);
    return err;
}

int collector_report_all(struct collector *collector, struct object_process *process,
                         enum object_change change, bool with_threads)
{
    int err = 0;
    for (unsigned kind = 0; kind < OBJECT_KIND_COUNT && !err; kind++) {
        struct object_news news = {.kind = kind, .change = change};
        if (collector->options.objects.kinds[kind] && (kind != OBJECT_THREAD || with_threads))
            err = collector_report(collector, process, &news);
    }
    return err;
}
