#include "worker/objects.h"
#include "base/array.h"
#include "mapping/space.h"
#include "worker/pages.h"

#include <string.h>

struct observation objects_observation(const struct object_news *news)
{
    return (struct observation){
        .process_id = news->process_id,
        .tid = news->tid,
        .program = news->program,
        .process = news->process,
        .round_ns = news->told_ns,
        .sampled.at_ns = news->at_ns,
        .evidence = EVIDENCE_SAMPLED,
        .snapshot = news->snapshot,
    };
}

/* Omits the frames of functions that only made the object for their caller: the agent's, and this
 * many more. At least one frame stays. */
static void drop_makers_frames(struct stack *stack, const struct object_news *news)
{
    size_t drop = 0;
    while (drop < stack->depth && stack->addresses[drop] >= news->code_start &&
           stack->addresses[drop] < news->code_limit)
        drop++;
    drop += news->skip;
    if (drop >= stack->depth)
        drop = stack->depth ? stack->depth - 1 : 0;
    stack->depth -= drop;
    if (drop)
        memmove(stack->addresses, stack->addresses + drop, stack->depth * sizeof *stack->addresses);
}

/* Whether the message has the stack of the thread that made it. */
static bool is_made(const struct object_news *news)
{
    return news->origin == ORIGIN_SEEN || news->origin == ORIGIN_LATER;
}

/* A stack can't be observed again: what it lacks, it lacks for good. */
static int unwind_maker(const struct means *means, const struct object_news *news,
                        struct program_tables *program, struct stack *stack, uint32_t *ret_space)
{
    static const struct stack no_stack = {.cut = STACK_CUT_NOT_KEPT};
    const struct observation observation = objects_observation(news);
    struct unwind_step step = {
        .means = means,
        .observation = &observation,
        .program = program,
        .stack = stack,
    };
    *ret_space = NO_SPACE;
    if (!program || !program->maps.space) {
        stack->depth = 0;
        stack->cut = no_stack.cut;
        return 0;
    }
    int err = unwind_step_run(&step);
    if (err)
        return err;
    *ret_space = program->maps.space->id;
    drop_makers_frames(stack, news);
    space_note_sampled(program->maps.space, stack->addresses, stack->depth);
    return generated_note(&program->generated, program->maps.space, &observation, stack);
}

/* The stack is the function that the thread began with, if that is known. */
static int start_stack(const struct object_news *news, const struct program_tables *program,
                       struct stack *stack, uint32_t *ret_space)
{
    *ret_space = NO_SPACE;
    stack->depth = 0;
    stack->cut = STACK_WHOLE;
    if (!news->start || !program || !program->maps.space)
        return 0;
    if (array_append(&stack->addresses, &stack->depth, &stack->capacity, news->start))
        return -ENOMEM;
    *ret_space = program->maps.space->id;
    space_note_sampled(program->maps.space, stack->addresses, stack->depth);
    return 0;
}

/* The stack of the thread that made the object, or of a thread whose creation was not seen. The
 * first frames of the latter are shown, so it must be complete. */
static int find_stack(const struct means *means, const struct object_news *news,
                      struct program_tables *program, struct stack *stack, uint32_t *ret_space)
{
    bool is_makers = is_made(news);
    if (!is_makers && !news->snapshot)
        return start_stack(news, program, stack, ret_space);
    int err = unwind_maker(means, news, program, stack, ret_space);
    if (err || is_makers || stack->cut == STACK_WHOLE)
        return err;
    return start_stack(news, program, stack, ret_space);
}

/* A thread begins with the name of the thread that created it; a process's first thread with the
 * name of the process. */
static uint32_t first_name(const struct results *results, const struct object_news *news)
{
    const struct object_maker *parent =
        objects_find(&results->objects, news->process, OBJECT_THREAD, (uint64_t)news->tid);
    return parent ? parent->name : results->stacks.processes[news->process].name;
}

static int name_of(struct results *results, const struct object_news *news, uint32_t *ret_name)
{
    if (news->name || news->kind != OBJECT_THREAD)
        return strings_intern(&results->strings, news->name ? news->name : "", ret_name);
    *ret_name = first_name(results, news);
    return 0;
}

/* A key that is an address is no id. */
static uint32_t tid_of(uint64_t key)
{
    return key <= INT32_MAX ? (uint32_t)key : 0;
}

/* The listing found the thread before its creation was reported: its name has been known since. */
static int count_made_late(struct results *results, const struct object_maker *known,
                           struct object_maker *maker, uint64_t key)
{
    if (maker->origin != ORIGIN_SEEN && maker->origin != ORIGIN_LATER)
        return 0;
    maker->name = known->name;
    return objects_move(&results->objects, key, maker);
}

static int count_made(const struct means *means, const struct object_news *news,
                      struct program_tables *program, struct stack *stack)
{
    struct results *results = means->results;
    bool is_thread = news->kind == OBJECT_THREAD;
    bool has_ids = is_thread && means->tells_threads_apart;
    struct object_maker maker = {
        .process = news->process,
        .kind = (uint16_t)news->kind,
        .origin = (uint16_t)news->origin,
        .tid = has_ids ? tid_of(news->key) : 0,
        .maker = has_ids && is_made(news) ? (uint32_t)news->tid : 0,
        .bytes = news->bytes,
    };
    uint32_t space;
    int err = find_stack(means, news, program, stack, &space);
    if (!err)
        err = stack_table_add_stack(&results->stacks, space, stack, &maker.stack);
    if (!err)
        err = name_of(results, news, &maker.name);
    if (err)
        return err;
    const struct object_maker *known =
        is_thread ? objects_find(&results->objects, maker.process, maker.kind, news->key) : NULL;
    if (known && (known->origin == ORIGIN_UNSEEN || known->origin == ORIGIN_MAIN))
        return count_made_late(results, known, &maker, news->key);
    err = objects_made(&results->objects, &maker, news->key, news->weight);
    if (!err && news->kind == OBJECT_PAGE)
        pages_made(results, maker.process, news);
    return err;
}

/* A thread that has gone already is counted with the name that it had. */
static int count_named(struct results *results, const struct object_news *news)
{
    const struct object_maker *known =
        objects_find(&results->objects, news->process, (uint32_t)news->kind, news->key);
    if (!known)
        return 0;
    struct object_maker maker = *known;
    int err = strings_intern(&results->strings, news->name, &maker.name);
    return err ? err : objects_move(&results->objects, news->key, &maker);
}

/* A listed thread. The report of its creation may not have had its id, and never has its name. */
static int count_there(const struct means *means, const struct object_news *news,
                       struct program_tables *program, struct stack *stack)
{
    struct objects *objects = &means->results->objects;
    uint32_t process = news->process, kind = (uint32_t)news->kind;
    if (objects_find(objects, process, kind, news->key))
        return 0;
    const struct object_maker *known =
        news->other_key ? objects_find(objects, process, kind, news->other_key) : NULL;
    if (!known)
        return count_made(means, news, program, stack);
    struct object_maker maker = *known;
    maker.tid = means->tells_threads_apart ? tid_of(news->key) : 0;
    int err = strings_intern(&means->results->strings, news->name, &maker.name);
    objects_rekey(objects, process, kind, news->other_key, news->key);
    return err ? err : objects_move(objects, news->key, &maker);
}

int objects_take(const struct means *means, const struct object_news *news,
                 struct program_tables *program, struct stack *stack)
{
    uint32_t process = news->process;
    switch (news->change) {
    case OBJECT_MADE:
        return count_made(means, news, program, stack);
    case OBJECT_THERE:
        return count_there(means, news, program, stack);
    case OBJECT_NAMED:
        return count_named(means->results, news);
    case OBJECT_GONE:
        objects_gone(&means->results->objects, process, (uint32_t)news->kind, news->key);
        return 0;
    case OBJECT_FORGOTTEN:
        objects_forget(&means->results->objects, process, (uint32_t)news->kind);
        return 0;
    case OBJECT_CHECKED:
        return 0; /* see worker/pages.h */
    case OBJECT_LEFT:
        objects_leave(&means->results->objects, process, (uint32_t)news->kind);
        return 0;
    }
    return 0;
}
