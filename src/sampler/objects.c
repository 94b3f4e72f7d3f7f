#include "sampler/objects.h"
#include "base/clock.h"
#include "objects/agent.h"
#include "objects/values.h"
#include "sampler/makers.h"
#include "sampler/news.h"
#include "sampler/page_faults.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* How often sources that are not there yet are looked for: soon, while a program begins, and later
 * as it may load a library at any time. */
#define BEGINS_FOR_NS 1000000000u
#define OPEN_EACH_NS 500000u
#define OPEN_PART_OF_TIME 1
#define OPEN_LATER_EACH_NS 500000000u
#define OPEN_LATER_PART_OF_TIME 100
/* How long the rest is waited for, at the end. */
#define REST_NS 2000000000u
#define AWAIT_NS 1000000

static const struct {
    object_open_fn *open;
    bool tells[OBJECT_KIND_COUNT];
} ways[OBJECT_SOURCE_COUNT] = {
    {agent_source_new, {[OBJECT_ALLOCATION] = true, [OBJECT_THREAD] = true}},
    {values_source_new, {[OBJECT_VALUE] = true}},
};

struct object_options objects_of_agent(const struct sampler *sampler)
{
    struct object_options options = sampler->options->objects;
    options.kinds[OBJECT_THREAD] &= !sampler->makers.has_stacks;
    return options;
}

static bool is_wanted(const struct object_options *options, size_t way)
{
    bool is_wanted = false;
    for (unsigned kind = 0; kind < OBJECT_KIND_COUNT; kind++)
        is_wanted |= ways[way].tells[kind] && options->kinds[kind];
    return is_wanted;
}

/* That there was none says less than any other reason, which may be of an earlier look. */
static void note_refusal(struct sampler *sampler, size_t way, int err)
{
    for (unsigned kind = 0; kind < OBJECT_KIND_COUNT; kind++) {
        int *refusal = &sampler->counts.objects[kind].refusal;
        if (ways[way].tells[kind] && sampler->options->objects.kinds[kind] &&
            (err != -ENOENT || !*refusal))
            *refusal = -err;
    }
}

/* Whether the source may still be there later: a program may load it, or another profiler end. */
static bool may_come(int err)
{
    return err == -ENOENT || err == -ENOEXEC || err == -EPERM || err == -EBUSY;
}

static int open_way(struct sampler *sampler, struct sampled_process *process, size_t way)
{
    struct object_sources *sources = &process->objects;
    const struct object_options options = objects_of_agent(sampler);
    int err = ways[way].open(process->program, &options, &sources->items[way]);
    if (err == -ENOMEM)
        return err;
    if (err)
        note_refusal(sampler, way, err);
    else
        program_keep_maps(process->program);
    sources->tell_threads |= !err && ways[way].tells[OBJECT_THREAD] && options.kinds[OBJECT_THREAD];
    sources->is_refused[way] = err && !may_come(err);
    return 0;
}

int objects_open(struct sampler *sampler, struct sampled_process *process)
{
    struct object_sources *sources = &process->objects;
    const struct object_options options = objects_of_agent(sampler);
    uint64_t now_ns = monotonic_ns();
    bool begins = now_ns - process->program_opened_ns < BEGINS_FOR_NS;
    int err = 0;
    if (!throttle_allows(&sources->opening, now_ns, begins ? OPEN_EACH_NS : OPEN_LATER_EACH_NS,
                         begins ? OPEN_PART_OF_TIME : OPEN_LATER_PART_OF_TIME))
        return 0;
    for (size_t i = 0; i < OBJECT_SOURCE_COUNT && !err; i++) {
        if (!sources->items[i] && !sources->is_refused[i] && is_wanted(&options, i))
            err = open_way(sampler, process, i);
    }
    sources->opening = (struct throttle){now_ns, monotonic_ns() - now_ns};
    return err;
}

/* Sends what a source tells. */
static int send(struct sampler *sampler, struct sampled_process *process, struct message *message)
{
    message->object.observation.process_id = process->process.pid;
    message->object.observation.program = program_hold(process->program);
    return news_send(sampler, process, message);
}

static int tell_from(struct sampler *sampler, struct sampled_process *process,
                     struct object_source *source, bool is_last)
{
    struct snapshots *snapshots = channel_snapshots(sampler->channel);
    while (is_last || !channel_is_behind(sampler->channel)) {
        struct message message = {0};
        if (!source->collect(source, snapshots, is_last, &message.object.observation,
                             &message.object.news))
            return 0;
        int err = send(sampler, process, &message);
        if (err)
            return err;
        sampler->objects_told++;
    }
    return 0;
}

int objects_tell(struct sampler *sampler, struct sampled_process *process, bool is_last)
{
    struct object_sources *sources = &process->objects;
    int err = process->program && !sampler->options->is_dump ? objects_open(sampler, process) : 0;
    for (size_t i = 0; i < OBJECT_SOURCE_COUNT && process->program && !err; i++) {
        if (!sources->items[i])
            continue;
        err = tell_from(sampler, process, sources->items[i], is_last);
        sampler->has_fast_objects |= sources->items[i]->is_fast;
    }
    return err;
}

void objects_refresh(struct sampled_process *process)
{
    for (size_t i = 0; i < OBJECT_SOURCE_COUNT; i++) {
        struct object_source *source = process->objects.items[i];
        if (source && source->refresh)
            source->refresh(source);
    }
}

bool objects_are_left(const struct sampled_process *process)
{
    bool are_left = false;
    for (size_t i = 0; i < OBJECT_SOURCE_COUNT; i++) {
        const struct object_source *source = process->objects.items[i];
        are_left |= source && source->has_more;
    }
    return are_left;
}

/* Requests of the worker, which would end the wait at once, are served later. */
static void await_snapshots(struct sampler *sampler)
{
    const struct timespec soon = {0, AWAIT_NS};
    channel_ring(sampler->channel);
    nanosleep(&soon, NULL);
}

static bool has_sources(const struct sampled_process *process)
{
    for (size_t i = 0; i < OBJECT_SOURCE_COUNT; i++) {
        if (process->objects.items[i])
            return true;
    }
    return false;
}

/* At the end there is no later tick: waits for the worker as long as snapshots are lacking, and for
 * news that are just being written. A program that goes on makes ever more objects. */
static int tell_rest(struct sampler *sampler, struct sampled_process *process)
{
    uint64_t until_ns = monotonic_ns() + REST_NS, told = sampler->objects_told;
    bool is_over = !has_sources(process);
    objects_refresh(process);
    int err = objects_tell(sampler, process, true);
    while (!is_over && !err && (monotonic_ns() < until_ns || objects_are_left(process))) {
        is_over = sampler->objects_told == told && !objects_are_left(process);
        told = sampler->objects_told;
        await_snapshots(sampler);
        err = objects_tell(sampler, process, true);
    }
    return err;
}

int objects_end(struct sampler *sampler, struct sampled_process *process)
{
    int err = tell_rest(sampler, process);
    for (size_t i = 0; i < OBJECT_SOURCE_COUNT; i++) {
        struct object_source *source = process->objects.items[i];
        if (!source)
            continue;
        source->count(source, sampler->ended_objects);
        source->free(source);
    }
    process->objects = (struct object_sources){0};
    objects_count(sampler);
    return err;
}

static int tell_of_all(struct sampler *sampler, struct sampled_process *process,
                       enum object_change change)
{
    int err = 0;
    for (unsigned kind = 0; kind < OBJECT_KIND_COUNT && !err; kind++) {
        struct message message = {.object.news = {.kind = kind, .change = change}};
        /* A thread's end is told, and one lives on when a program is executed. */
        bool is_told = kind == OBJECT_THREAD && change == OBJECT_FORGOTTEN;
        if (sampler->options->objects.kinds[kind] && !is_told)
            err = news_send(sampler, process, &message);
    }
    return err;
}

int objects_forget_program(struct sampler *sampler, struct sampled_process *process)
{
    return tell_of_all(sampler, process, OBJECT_FORGOTTEN);
}

int objects_leave_process(struct sampler *sampler, struct sampled_process *process)
{
    bool is_endless = sampler->options->moment_every_ns;
    return tell_of_all(sampler, process, is_endless ? OBJECT_FORGOTTEN : OBJECT_LEFT);
}

void objects_count(struct sampler *sampler)
{
    struct object_counts *counts = sampler->counts.objects;
    for (unsigned kind = 0; kind < OBJECT_KIND_COUNT; kind++) {
        int refusal = counts[kind].refusal;
        counts[kind] = sampler->ended_objects[kind];
        if (!counts[kind].refusal)
            counts[kind].refusal = refusal;
    }
    for (size_t i = 0; i < sampler->process_count; i++) {
        for (size_t j = 0; j < OBJECT_SOURCE_COUNT; j++) {
            const struct object_source *source = sampler->processes[i]->objects.items[j];
            if (source)
                source->count(source, counts);
        }
    }
    makers_count(sampler, &counts[OBJECT_THREAD]);
    page_faults_count(sampler, &counts[OBJECT_PAGE]);
}
