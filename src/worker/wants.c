#include "worker/wants.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 8 /* observations of a thread in a row, for more of its stack or new maps */
#define STACK_LIMIT_MIN (2u << 10)
#define STACK_LIMIT_MAX (16u << 20)
#define STACK_LIMIT_FACTOR 8
/* The limit of a thread's stack copies is lowered once this many samples in a row would have done
 * with at most this part of it. */
#define ROOMY_SAMPLES 16
#define ROOMY_PART 4
/* How much is copied of another stack, which the thread left in mid-use: what was called since then
 * is mostly gone, but by the next tick the thread may leave that stack deeper down. */
#define OTHER_STACK_BYTES (32u << 10)
#define OTHER_STACK_BYTES_MAX (1u << 20)
#define OTHER_STACK_BYTES_BELOW (4u << 10)

static int tell(const struct following *following, enum request_kind kind)
{
    const struct thread_unwinding *thread = following->thread;
    struct request request = {
        .kind = kind,
        .stack_limit = thread->stack_limit,
        .other_stack = thread->other_stack,
    };
    return following_request(following, &request);
}

static int ask(struct following *following, enum request_kind kind)
{
    /* What the record told of is over: only later stacks can have what is lacking. */
    if (following->observation->returned_ns)
        return tell(following, REQUEST_STACK);
    following->is_asked = true;
    return tell(following, kind);
}

/* Sends the sampling thread a copy of the areas. */
static int send_areas(const struct following *following)
{
    const struct stack_areas *areas = &following->program->maps.areas;
    struct request request = {
        .kind = REQUEST_AREAS,
        .program = following->observation->program->number,
    };
    if (!areas->count)
        return 0;
    request.areas.items = malloc(areas->count * sizeof *areas->items);
    if (!request.areas.items)
        return -ENOMEM;
    memcpy(request.areas.items, areas->items, areas->count * sizeof *areas->items);
    request.areas.count = request.areas.capacity = areas->count;
    int err = following_request(following, &request);
    if (err)
        stack_areas_free(&request.areas);
    return err;
}

/* Finds the area that holds an address, and rereads the areas if necessary; NULL if it is not
 * known. */
static int find_area(struct following *following, uint64_t address,
                     const struct stack_area **ret_area)
{
    struct program_maps *maps = &following->program->maps;
    bool was_read = false;
    int err = 0;
    *ret_area = stack_areas_find(&maps->areas, address);
    if (!*ret_area)
        err = program_maps_read_areas(maps, following->observation, &was_read);
    if (!err && was_read) {
        err = send_areas(following);
        *ret_area = stack_areas_find(&maps->areas, address);
    }
    return err;
}

/* The copy ended with the page: its mapping was not known when it was made. */
static int ask_for_end(struct following *following)
{
    const struct stack_area *area;
    uint64_t sp = registers_sp(&following->observation->snapshot->registers);
    int err = find_area(following, sp, &area);
    return err || !area ? err : ask(following, REQUEST_ANEW);
}

/* The copy ended before the mapping did. If it is shorter than the present limit, it was made
 * before that limit was set. */
static int ask_for_longer(struct following *following)
{
    struct thread_unwinding *thread = following->thread;
    bool is_as_long = following->observation->snapshot->stack.bytes >= thread->stack_limit;
    /* An endless stack's unwind tables lead nowhere: copying ever more memory would only cost the
     * thread time. */
    if (thread->is_endless || (is_as_long && thread->stack_limit >= STACK_LIMIT_MAX))
        return 0;
    if (is_as_long)
        thread->stack_limit *= STACK_LIMIT_FACTOR;
    if (thread->stack_limit > STACK_LIMIT_MAX)
        thread->stack_limit = STACK_LIMIT_MAX;
    return ask(following, REQUEST_STACK_ANEW);
}

/* Whether to look for another stack in this round. If that was in vain from about the same place,
 * it is tried in ever fewer rounds: a damaged stack leads anywhere, and each try stops a running
 * thread. From another place it may lead to the end: a thread that was in a signal handler has left
 * it. */
static bool may_look_elsewhere(const struct following *following)
{
    struct thread_unwinding *thread = following->thread;
    uint64_t sp = registers_sp(&following->observation->snapshot->registers);
    uint64_t tick = following->observation->tick;
    if (!thread->other_misses || thread->other_tick != tick) {
        bool is_near = sp - thread->other_from + OTHER_STACK_BYTES < 2 * OTHER_STACK_BYTES;
        thread->other_misses = is_near ? thread->other_misses + 1 : 1;
        thread->other_tick = tick;
        thread->other_from = sp;
    }
    return (thread->other_misses & (thread->other_misses - 1)) == 0;
}

/* Sets which part of the other stack is copied, so that the copy contains the address. */
static void place_other_stack(struct stack_place *other, const struct stack_area *area,
                              uint64_t address)
{
    uint64_t room = address > area->start ? address - area->start : 0;
    uint64_t start = address - (room < OTHER_STACK_BYTES_BELOW ? room : OTHER_STACK_BYTES_BELOW);
    uint64_t end = other->address + other->bytes;
    /* The address was already asked for, after this copy was made. */
    if (other->address && address >= other->address && address < end)
        return;
    /* This is still the same stack, unless coroutines have theirs in one mapping. */
    bool is_further = other->address && address >= end && address - end < OTHER_STACK_BYTES &&
                      address < area->end;
    if (is_further && other->bytes < OTHER_STACK_BYTES_MAX)
        other->bytes *= STACK_LIMIT_FACTOR;
    else
        *other = (struct stack_place){start, OTHER_STACK_BYTES};
}

/* The stack goes on in another mapping: asks to copy that place too, if that is likely to help. A
 * damaged stack leads anywhere. */
static int ask_for_other(struct following *following)
{
    const struct stack_area *area;
    uint64_t address = following->hints.missing_address;
    int err = find_area(following, address, &area);
    if (err || !area || !may_look_elsewhere(following))
        return err;
    place_other_stack(&following->thread->other_stack, area, address);
    following->thread->other_unused = 0;
    return ask(following, REQUEST_STACK_ANEW);
}

int wants_ask(struct following *following)
{
    const struct unwind_hints *hints = &following->hints;
    bool end_is_known = following->observation->snapshot->stack.end_is_known;
    int err = 0;
    if (!hints->needs_more_stack && !hints->missing_address)
        return 0;
    /* A copy that was made before the last request was served says nothing of whether that helps.
     */
    following->is_old = following->observation->served < following->thread->asked;
    following->is_asked = following->is_old;
    if (following->is_old || following->thread->tries >= TRIES_MAX)
        return 0;
    if (hints->needs_more_stack && !end_is_known)
        err = ask_for_end(following);
    else if (hints->needs_more_stack)
        err = ask_for_longer(following);
    if (!err && !following->is_asked && hints->missing_address)
        err = ask_for_other(following);
    return err;
}

/* Asks to copy twice what was needed: the thread may be deeper down next time. Sets *ret_is_news if
 * that differs much from what the sampling thread was last told. */
static void adjust_limit(struct thread_unwinding *thread, size_t used_bytes, bool *ret_is_news)
{
    size_t wanted = used_bytes * 2, limit = thread->stack_limit;
    wanted = wanted < STACK_LIMIT_MIN ? STACK_LIMIT_MIN : wanted;
    wanted = wanted > STACK_LIMIT_MAX ? STACK_LIMIT_MAX : wanted;
    bool is_roomy = wanted <= limit / ROOMY_PART;
    thread->roomy_samples = is_roomy ? thread->roomy_samples + 1 : 0;
    if (!is_roomy || wanted > thread->roomy_limit)
        thread->roomy_limit = is_roomy ? wanted : 0;
    if (wanted > limit)
        limit = wanted > 2 * limit ? wanted : 2 * limit;
    else if (thread->roomy_samples == ROOMY_SAMPLES)
        limit = thread->roomy_limit;
    limit = limit > STACK_LIMIT_MAX ? STACK_LIMIT_MAX : limit;
    if (limit == thread->stack_limit)
        return;
    thread->stack_limit = limit;
    thread->roomy_samples = 0;
    thread->roomy_limit = 0;
    *ret_is_news = true;
}

static void adjust_other(struct thread_unwinding *thread, bool is_used, bool *ret_is_news)
{
    thread->other_unused = is_used ? 0 : thread->other_unused + 1;
    if (!thread->other_stack.address || thread->other_unused < ROOMY_SAMPLES)
        return;
    thread->other_stack = (struct stack_place){0};
    *ret_is_news = true;
}

int wants_adjust(const struct following *following)
{
    const struct unwind_hints *hints = &following->hints;
    struct thread_unwinding *thread = following->thread;
    bool is_news = false;
    int err = 0;
    if (hints->needs_more_stack && following->observation->snapshot->stack.end_is_known)
        thread->is_endless = true;
    /* What did not help this stack may help another. */
    if (following_is_proof(following)) {
        thread->other_misses = 0;
        thread->is_endless = false;
    }
    /* A stack that is cut because a register is missing does not tell how much is needed with
     * it. */
    if (following->stack->cut != STACK_CUT_NO_REGISTER)
        adjust_limit(thread, hints->stack_bytes_used, &is_news);
    adjust_other(thread, hints->used_other_stack, &is_news);
    if (is_news)
        err = tell(following, REQUEST_STACK);
    /* It may sleep in code that was mapped after the maps were read. It is observed again once: by
     * the next round that code is known. */
    if (!err && hints->has_unknown_address && !thread->leads_nowhere)
        err = tell(following, REQUEST_LATER);
    thread->leads_nowhere = hints->has_unknown_address;
    return err;
}
