/* The sources of objects that are in programs: agents and custom profiles (objects/source.h). */
#include "base/clock.h"
#include "objects/agent.h"
#include "objects/collector.h"
#include "objects/state.h"
#include "objects/values.h"

/* How often to search for sources that are not open yet: often while a program begins, so that
 * little of its life is missed, but also later, because it may load a library at any time. Each
 * search reads its maps. */
#define BEGINS_FOR_NS 1000000000u
#define OPEN_PART_OF_AGE 8
#define OPEN_PART_OF_TIME 1
#define OPEN_LATER_EACH_NS 500000000u
#define OPEN_LATER_PART_OF_TIME 100

static const struct {
    object_open_fn *open;
    bool tells[OBJECT_KIND_COUNT];
} places[PROGRAM_SOURCES] = {
    {agent_source_new, {[OBJECT_ALLOCATION] = true, [OBJECT_THREAD] = true}},
    {values_source_new, {[OBJECT_VALUE] = true}},
};

/* ---- Opening ---- */

static bool is_wanted(const struct object_options *options, size_t place)
{
    bool is_wanted = false;
    for (unsigned kind = 0; kind < OBJECT_KIND_COUNT; kind++)
        is_wanted |= places[place].tells[kind] && options->kinds[kind];
    return is_wanted;
}

/* -ENOENT says less than any other reason, even an earlier one. */
static void note_refusal(struct collector *collector, size_t place, int err)
{
    for (unsigned kind = 0; kind < OBJECT_KIND_COUNT; kind++) {
        int *refusal = &collector->refusals[kind];
        if (places[place].tells[kind] && collector->options.objects.kinds[kind] &&
            (err != -ENOENT || !*refusal))
            *refusal = -err;
    }
}

/* Whether the source may still appear later: the program may load it, or another profiler may end.
 */
static bool may_come(int err)
{
    return err == -ENOENT || err == -ENOEXEC || err == -EPERM || err == -EBUSY;
}

static int open_place(struct collector *collector, struct object_process *process, size_t place)
{
    struct program_sources *sources = &process->sources;
    const struct object_options options = collector_agent_options(collector);
    struct program *program = object_program(process);
    int err = places[place].open(program, &options, &sources->items[place]);
    if (err == -ENOMEM)
        return err;
    if (err)
        note_refusal(collector, place, err);
    else
        program_keep_maps(program);
    sources->tell_threads |=
        !err && places[place].tells[OBJECT_THREAD] && options.kinds[OBJECT_THREAD];
    sources->is_refused[place] = err && !may_come(err);
    return 0;
}

static int open_all(struct collector *collector, struct object_process *process)
{
    struct program_sources *sources = &process->sources;
    const struct object_options options = collector_agent_options(collector);
    uint64_t now_ns = monotonic_ns();
    uint64_t age_ns = now_ns - process->span.opened_ns;
    bool begins = age_ns < BEGINS_FOR_NS;
    int err = 0;
    if (!throttle_allows(&sources->opening, now_ns,
                         begins ? age_ns / OPEN_PART_OF_AGE : OPEN_LATER_EACH_NS,
                         begins ? OPEN_PART_OF_TIME : OPEN_LATER_PART_OF_TIME))
        return 0;
    for (size_t i = 0; i < PROGRAM_SOURCES && !err; i++) {
        if (!sources->items[i] && !sources->is_refused[i] && is_wanted(&options, i))
            err = open_place(collector, process, i);
    }
    sources->opening = (struct throttle){now_ns, monotonic_ns() - now_ns};
    return err;
}

static int open_places(struct collector *collector)
{
    int err = 0;
    for (size_t i = 0; i < collector->process_count && !err; i++) {
        struct object_process *process = collector->processes[i].process;
        /* A recording may end before the first search for sources. */
        bool is_new = !process->sources.opening.done_ns;
        if (object_program(process) && (is_new || !object_program_over_ns(process)))
            err = open_all(collector, process);
    }
    return err;
}

/* ---- Sending ---- */

/* Sends a source's messages, as far as there is room. A program may report kinds that are not
 * wanted. */
static int tell_source(struct collector *collector, struct object_process *process,
                       struct object_source *source, bool *ret_is_left)
{
    struct snapshot_pool *snapshots = collector->queue->snapshots;
    int err = 0;
    while (!err) {
        struct object_news news = {0};
        *ret_is_left = !collector_has_room(collector, process, AGENT_STACK_BYTES_MAX);
        if (*ret_is_left)
            return 0;
        if (!source->collect(source, snapshots, &news))
            break;
        news.process_id = process->pid;
        news.program = program_hold(object_program(process));
        err = collector_report(collector, process, &news);
    }
    *ret_is_left = source->has_more;
    collector->is_short |= source->has_more;
    collector->is_fast |= source->is_fast;
    return err;
}

static int tell_process(struct collector *collector, struct object_process *process)
{
    struct program_sources *sources = &process->sources;
    uint64_t now_ns = monotonic_ns();
    bool are_left = false, is_left;
    int err = 0;
    for (size_t i = 0; i < PROGRAM_SOURCES && !err; i++) {
        if (!sources->items[i])
            continue;
        err = tell_source(collector, process, sources->items[i], &is_left);
        are_left |= is_left;
    }
    if (!are_left)
        sources->told_ns = now_ns;
    return err;
}

static int tell(struct collector *collector)
{
    int err = collector->options.is_dump ? 0 : open_places(collector);
    for (size_t i = 0; i < collector->process_count && !err; i++)
        err = tell_process(collector, collector->processes[i].process);
    return err;
}

static uint64_t told_ns(const struct collector *collector, const struct object_process *process)
{
    bool has_sources = false;
    (void)collector;
    for (size_t i = 0; i < PROGRAM_SOURCES; i++)
        has_sources |= process->sources.items[i] != NULL;
    return has_sources ? process->sources.told_ns : UINT64_MAX;
}

static void refresh(struct object_process *process)
{
    for (size_t i = 0; i < PROGRAM_SOURCES; i++) {
        struct object_source *source = process->sources.items[i];
        if (source && source->refresh)
            source->refresh(source);
    }
}

static void end_program(struct collector *collector, struct object_process *process)
{
    for (size_t i = 0; i < PROGRAM_SOURCES; i++) {
        struct object_source *source = process->sources.items[i];
        if (!source)
            continue;
        source->count(source, collector->ended);
        source->free(source);
    }
    process->sources = (struct program_sources){0};
}

static void count(const struct collector *collector, struct object_counts counts[])
{
    for (unsigned kind = 0; kind < OBJECT_KIND_COUNT; kind++) {
        counts[kind] = collector->ended[kind];
        if (!counts[kind].refusal)
            counts[kind].refusal = collector->refusals[kind];
    }
    for (size_t i = 0; i < collector->process_count; i++) {
        for (size_t j = 0; j < PROGRAM_SOURCES; j++) {
            const struct object_source *source = collector->processes[i].process->sources.items[j];
            if (source)
                source->count(source, counts);
        }
    }
}

const struct object_way way_in_program = {.open = open_places,
                                          .refresh = refresh,
                                          .tell = tell,
                                          .told_ns = told_ns,
                                          .end_program = end_program,
                                          .count = count};
