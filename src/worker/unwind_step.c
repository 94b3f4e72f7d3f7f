#include "worker/unwind_step.h"
#include "base/clock.h"
#include "mapping/space.h"
#include "observe/call.h"
#include "proc/memory.h"
#include "unwind/frame_pointer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sends a request about the thread. The caller has filled in its kind and what goes with that. */
static int send_request(const struct unwind_step *step, struct request *request)
{
    bool wants_observation = request->kind == REQUEST_STACK_ANEW || request->kind == REQUEST_ANEW ||
                             request->kind == REQUEST_FRAME_POINTER;
    if (wants_observation)
        request->serial = ++step->thread->asked;
    request->thread = step->observation->thread;
    request->tid = step->observation->tid;
    return channel_request(step->means->channel, request);
}

/* Whether one of the files that the stack leads through has been replaced. */
static bool is_replaced(const struct unwind_step *step)
{
    const struct observation *observation = step->observation;
    const struct stack *stack = step->stack;
    return space_is_replaced(step->program->maps.space, observation->tid, stack->addresses,
                             stack->depth, observation->round_ns, monotonic_ns());
}

/* Whether the stack proves what led to it, such as a frame pointer that was found. */
static bool is_proof(const struct unwind_step *step)
{
    return step->stack->cut == STACK_WHOLE || step->stack->cut == STACK_CUT_AT_MAX_DEPTH;
}

/* Reads the word that the unwinder lacked, if it is in ordinary memory: a stack, which the target
 * may make up, says where it is. Only one is read: all calls of C that a thread is in are of one
 * goroutine. *ret_is_read: it was read. */
static int read_other_word(const struct unwind_step *step, bool *ret_is_read)
{
    const struct observation *observation = step->observation;
    uint64_t address = step->hints.missing_word;
    struct other_word *word = &observation->snapshot->other_word;
    const struct stack_areas *areas = &step->program->maps.areas;
    if (word->address)
        return 0;
    if (!stack_areas_find(areas, address) &&
        program_maps_read_areas(&step->program->maps, observation))
        return -ENOMEM;
    const struct stack_area *area = stack_areas_find(areas, address);
    if (!area || area->is_only_read || area->may_wait)
        return 0;
    *ret_is_read =
        memory_read_word(observation_live_tid(observation), areas, address, &word->value);
    word->address = *ret_is_read ? address : 0;
    return 0;
}

/* Provides what the unwinder lacked, if possible. *ret_has_more: unwinding may get further now. */
static int serve(struct unwind_step *step, bool *ret_has_more)
{
    const struct means *means = step->means;
    const struct observation *observation = step->observation;
    const struct unwind_hints *hints = &step->hints;
    struct program_tables *program = step->program;
    int err = 0;
    *ret_has_more = false;
    if (hints->has_unknown_address || is_replaced(step))
        err = program_maps_refresh(&program->maps, means->results, observation, ret_has_more);
    if (!err && !*ret_has_more && hints->unlearnt_address)
        err = generated_learn(&program->generated, means->rules, program->maps.space,
                              observation->program, hints->unlearnt_address, ret_has_more);
    if (!err && !*ret_has_more && hints->missing_word)
        err = read_other_word(step, ret_has_more);
    return err;
}

/* The loop ends, as maps are reread a few times at most, each address of generated code is learnt
 * once, and one word is read. */
int unwind_step_run(struct unwind_step *step)
{
    const struct means *means = step->means;
    bool has_more;
    int err;
    step->observation->snapshot->other_word.address = 0;
    do {
        err = unwind_snapshot(means->rules, step->program->maps.space, step->observation->snapshot,
                              means->max_depth, step->stack, &step->hints);
        if (!err)
            err = serve(step, &has_more);
    } while (!err && has_more);
    return err;
}

/* ---- What a snapshot lacked that a new one can have: more of the stack, where the stack ends, or
 * the other stack on which it continues ---- */

#define TRIES_MAX 8 /* observations of a thread in a row, for more of its stack or new maps */
#define STACK_LIMIT_MIN (2u << 10)
#define STACK_LIMIT_MAX (16u << 20)
#define STACK_LIMIT_FACTOR 8
/* The limit of a thread's stack copies is lowered after this many successive samples that needed at
 * most this part of it. */
#define ROOMY_SAMPLES 16
#define ROOMY_PART 4
/* How much is copied of another stack that the thread left in use. By the next tick it may have
 * gone deeper on that stack. */
#define OTHER_STACK_BYTES (32u << 10)
#define OTHER_STACK_BYTES_MAX (1u << 20)
#define OTHER_STACK_BYTES_BELOW (4u << 10)

static int send_limits(const struct unwind_step *step, enum request_kind kind)
{
    const struct thread_unwinding *thread = step->thread;
    struct request request = {
        .kind = kind,
        .stack_limit = thread->stack_limit,
        .other_stack = thread->other_stack,
    };
    return send_request(step, &request);
}

static int ask(struct unwind_step *step, enum request_kind kind)
{
    /* A recorded wait is over: only later stacks can contain what this one lacks. */
    if (step->observation->record.returned_ns)
        return send_limits(step, REQUEST_STACK);
    step->is_asked = true;
    return send_limits(step, kind);
}

/* Sends the sampling thread a copy of the areas, unless it has them. */
static int send_areas(const struct unwind_step *step)
{
    struct program_maps *maps = &step->program->maps;
    const struct stack_areas *areas = &maps->areas;
    struct request request = {
        .kind = REQUEST_AREAS,
        .program = step->observation->program->number,
    };
    if (!areas->count || maps->areas_are_sent)
        return 0;
    request.areas.items = malloc(areas->count * sizeof *areas->items);
    if (!request.areas.items)
        return -ENOMEM;
    memcpy(request.areas.items, areas->items, areas->count * sizeof *areas->items);
    request.areas.count = request.areas.capacity = areas->count;
    int err = send_request(step, &request);
    if (err)
        stack_areas_free(&request.areas);
    maps->areas_are_sent = !err;
    return err;
}

/* Finds the area that holds an address, and rereads the areas if needed; NULL if it is not known.
 */
static int find_area(struct unwind_step *step, uint64_t address, const struct stack_area **ret_area)
{
    struct program_maps *maps = &step->program->maps;
    int err = 0;
    if (!stack_areas_find(&maps->areas, address))
        err = program_maps_read_areas(maps, step->observation);
    *ret_area = stack_areas_find(&maps->areas, address);
    return err ? err : send_areas(step);
}

/* The copy ended with the page: its mapping was not known when it was made. */
static int ask_for_end(struct unwind_step *step)
{
    const struct stack_area *area;
    uint64_t sp = registers_sp(&step->observation->snapshot->registers);
    int err = find_area(step, sp, &area);
    return err || !area ? err : ask(step, REQUEST_ANEW);
}

/* The copy ended before the mapping did. If it is shorter than the current limit, it was made
 * before that limit was set. */
static int ask_for_longer(struct unwind_step *step)
{
    struct thread_unwinding *thread = step->thread;
    bool is_as_long = step->observation->snapshot->stack.bytes >= thread->stack_limit;
    /* The unwind tables of an endless stack never reach its end: copying more and more memory would
     * only cost the thread time. */
    if (thread->is_endless || (is_as_long && thread->stack_limit >= STACK_LIMIT_MAX))
        return 0;
    if (is_as_long)
        thread->stack_limit *= STACK_LIMIT_FACTOR;
    if (thread->stack_limit > STACK_LIMIT_MAX)
        thread->stack_limit = STACK_LIMIT_MAX;
    return ask(step, REQUEST_STACK_ANEW);
}

/* Whether to look for another stack in this round. After failures from about the same place, it is
 * tried in fewer and fewer rounds: a damaged stack leads anywhere, and each try stops a running
 * thread. From another place it may succeed: the thread may have left a signal handler. */
static bool may_look_elsewhere(const struct unwind_step *step)
{
    struct thread_unwinding *thread = step->thread;
    uint64_t sp = registers_sp(&step->observation->snapshot->registers);
    uint64_t tick = step->observation->tick;
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
    /* The address was requested after this copy was made. */
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

/* The stack continues in another mapping: requests a copy of that too, if it is likely to help. A
 * damaged stack leads anywhere. */
static int ask_for_other(struct unwind_step *step)
{
    const struct stack_area *area;
    uint64_t address = step->hints.missing_address;
    int err = find_area(step, address, &area);
    if (err || !area || !may_look_elsewhere(step))
        return err;
    place_other_stack(&step->thread->other_stack, area, address);
    step->thread->other_unused = 0;
    return ask(step, REQUEST_STACK_ANEW);
}

/* Whether the stack continues in memory that could not be read. */
static bool is_unreadable(const struct unwind_step *step)
{
    const struct stack_copy *copy = &step->observation->snapshot->stack;
    return step->hints.needs_more_stack && copy->end_is_known && copy->is_unreadable;
}

/* After unwinding: requests what was missing, and then sets is_asked. The number of tries is
 * limited: after a few successive observations of a thread, its stack is accepted as it is. Returns
 * 0 or -ENOMEM. */
static int ask_for_missing(struct unwind_step *step)
{
    const struct unwind_hints *hints = &step->hints;
    bool end_is_known = step->observation->snapshot->stack.end_is_known;
    int err = 0;
    if (!hints->needs_more_stack && !hints->missing_address)
        return 0;
    /* A longer copy would end there, too. */
    if (is_unreadable(step))
        return 0;
    /* A copy made before the last request was served does not show whether it helps. */
    step->is_old = step->observation->served < step->thread->asked;
    step->is_asked = step->is_old;
    if (step->is_old || step->thread->tries >= TRIES_MAX)
        return 0;
    if (hints->needs_more_stack && !end_is_known)
        err = ask_for_end(step);
    else if (hints->needs_more_stack)
        err = ask_for_longer(step);
    if (!err && !step->is_asked && hints->missing_address)
        err = ask_for_other(step);
    return err;
}

/* Sets the limit to twice what was needed, because the next stack may be deeper. Sets *ret_is_news
 * if the limit has changed much. */
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

/* For a stack that will be counted: adjusts how much is copied next time. Requests one more look
 * later, if the stack led to unmapped addresses. Returns 0 or -ENOMEM. */
static int adjust_stack_limits(const struct unwind_step *step)
{
    const struct unwind_hints *hints = &step->hints;
    struct thread_unwinding *thread = step->thread;
    bool is_news = false;
    int err = 0;
    bool end_is_known = step->observation->snapshot->stack.end_is_known;
    if (hints->needs_more_stack && end_is_known && !is_unreadable(step))
        thread->is_endless = true;
    /* What failed for another stack may help the next one. */
    if (is_proof(step)) {
        thread->other_misses = 0;
        thread->is_endless = false;
    }
    /* A stack cut because a register is missing does not show how much is needed with it. */
    if (step->stack->cut != STACK_CUT_NO_REGISTER)
        adjust_limit(thread, hints->stack_bytes_used, &is_news);
    adjust_other(thread, hints->used_other_stack, &is_news);
    if (is_news)
        err = send_limits(step, REQUEST_STACK);
    /* The thread may be asleep in code that was mapped after the maps were read. It is observed
     * again once, because the next round knows that code. */
    if (!err && hints->has_unknown_address && !thread->leads_nowhere)
        err = send_limits(step, REQUEST_LATER);
    thread->leads_nowhere = hints->has_unknown_address;
    return err;
}

/* ---- Registers that reading a sleeping thread does not show. They are found in its stack, known
 * from the places where other threads sleep, or read by stopping one such thread, which is
 * requested ---- */

static struct registers *registers_of(const struct unwind_step *step)
{
    return &step->observation->snapshot->registers;
}

/* Before unwinding: remembers the registers of a thread that was stopped. */
static void note_stopped_registers(struct unwind_step *step)
{
    const struct registers *registers = registers_of(step);
    struct thread_unwinding *thread = step->thread;
    if (!registers_has(registers, architecture.frame_pointer) ||
        !registers_has(registers, architecture.base_pointer))
        return;
    thread->stopped_sp = registers_sp(registers);
    thread->stopped_frame_pointer = registers->values[architecture.frame_pointer];
    thread->stopped_base_pointer = registers->values[architecture.base_pointer];
}

static int try_with_registers(struct unwind_step *step)
{
    int err = unwind_step_run(step);
    return err ? err : ask_for_missing(step);
}

static bool is_site_known(const struct site *site)
{
    return site && site->is_known;
}

/* Finds or adds the site. NULL if memory is short. */
static struct site *site_of(struct sites *sites, uint64_t key)
{
    struct site *site = sites_find(sites, key);
    return site || sites_add(sites, key) ? site : sites_find(sites, key);
}

static int learn_distance(const struct unwind_step *step, uint64_t key)
{
    const struct registers *registers = registers_of(step);
    struct site *site = site_of(&step->program->sites, key);
    if (!site)
        return -ENOMEM;
    uint64_t sp = registers_sp(registers);
    site->is_known = true;
    site->distance = registers->values[architecture.frame_pointer] - sp;
    site->has_base_pointer = registers_has(registers, architecture.base_pointer);
    site->base_distance = registers->values[architecture.base_pointer] - sp;
    return 0;
}

/* Remembers where the thread's frame pointer is, for itself and for others at its site. */
static int learn_site(const struct unwind_step *step, const struct site_keys *keys)
{
    int err = learn_distance(step, keys->own);
    return err || is_site_known(sites_find(&step->program->sites, keys->shared))
               ? err
               : learn_distance(step, keys->shared);
}

/* The key of the site to stop the thread for. */
static uint64_t key_to_ask_by(const struct unwind_step *step, const struct site_keys *keys)
{
    return is_site_known(sites_find(&step->program->sites, keys->shared)) ? keys->own
                                                                          : keys->shared;
}

/* A thread stopped by a signal stays stopped, so that no call is disturbed. */
static bool may_stop_asleep(const struct observation *observation)
{
    return observation->state == THREAD_STOPPED ||
           call_survives_stop(observation->wait.syscall_number);
}

/* Asks for the thread's registers when it sleeps again. */
static int ask_for_registers(struct unwind_step *step)
{
    struct request request = {.kind = REQUEST_REGISTERS};
    if (step->thread->wants_registers)
        return 0;
    step->thread->wants_registers = true;
    return send_request(step, &request);
}

/* Asks to stop the thread, if permitted, to learn the frame pointer of its site. */
static int ask_for_stop(struct unwind_step *step, const struct site_keys *keys)
{
    const struct observation *observation = step->observation;
    const struct registers *registers = registers_of(step);
    struct sites *sites = &step->program->sites;
    struct site *site = site_of(sites, key_to_ask_by(step, keys));
    if (!site)
        return -ENOMEM;
    /* Another thread will be stopped there; its result is known in the next round. */
    if (site->asked_ns >= observation->round_ns) {
        struct request request = {.kind = REQUEST_LATER};
        return send_request(step, &request);
    }
    if (!site->stops_left || !may_stop_asleep(observation))
        return ask_for_registers(step);
    site->stops_left--;
    site->asked_ns = monotonic_ns();
    step->thread->site = *keys;
    step->thread->stopped_link = 0;
    step->is_asked = true;
    struct request request = {
        .kind = REQUEST_FRAME_POINTER,
        .asleep = {registers_pc(registers), registers_sp(registers), observation->state,
                   observation->wait.syscall_number},
    };
    return send_request(step, &request);
}

/* A thread that sleeps in a page fault and was once stopped with the same stack pointer is usually
 * in the same call, with the frame pointer that it had then. That is accepted if it completes the
 * stack; otherwise the stack stays as it was. */
static int unwind_as_stopped(struct unwind_step *step)
{
    const struct thread_unwinding *thread = step->thread;
    struct registers *registers = registers_of(step), blocked = *registers;
    if (step->observation->wait.syscall_number >= 0 ||
        registers_sp(registers) != thread->stopped_sp)
        return 0;
    registers_set(registers, architecture.frame_pointer, thread->stopped_frame_pointer);
    registers_set(registers, architecture.base_pointer, thread->stopped_base_pointer);
    int err = try_with_registers(step);
    if (err || step->is_asked || is_proof(step))
        return err;
    *registers = blocked;
    return try_with_registers(step);
}

/* A stopped thread gets a CPU once, to go back to sleep. If it has not got one again since, it is
 * still in the same sleep. */
static void set_link_of_stop(const struct unwind_step *step, const struct site *own)
{
    const struct thread_unwinding *thread = step->thread;
    const struct reading *now = &step->observation->now;
    if (architecture.link < REGISTERS_MAX && thread->stopped_link && own->key == thread->site.own &&
        reading_has_times(now) && now->activity.switches == thread->stopped_switches + 1 &&
        !registers_has(registers_of(step), architecture.link))
        registers_set(registers_of(step), architecture.link, thread->stopped_link);
}

/* Keeps the link register, unless the call had ended by the time of the stop: then the thread does
 * not go back to sleep. */
static void keep_link(const struct unwind_step *step)
{
    const struct observation *observation = step->observation;
    const struct registers *registers = registers_of(step);
    bool sleeps_on = registers->interrupted_call >= 0 || observation->state == THREAD_STOPPED;
    if (architecture.link == REGISTERS_MAX || !sleeps_on || !observation->stop.switches)
        return;
    step->thread->stopped_link = registers->values[architecture.link];
    step->thread->stopped_switches = observation->stop.switches;
}

/* A function that has not saved its return address has it in the link register, which differs
 * between visits of a site. */
static int unwind_by_known_site(struct unwind_step *step, const struct site *site)
{
    struct registers *registers = registers_of(step);
    uint64_t sp = registers_sp(registers);
    registers_set(registers, architecture.frame_pointer, sp + site->distance);
    if (site->has_base_pointer)
        registers_set(registers, architecture.base_pointer, sp + site->base_distance);
    set_link_of_stop(step, site);
    int err = try_with_registers(step);
    bool lacks_link = architecture.link != REGISTERS_MAX && !step->is_asked &&
                      step->stack->cut == STACK_CUT_NO_REGISTER;
    return !err && lacks_link && !step->means->waits ? ask_for_registers(step) : err;
}

static int unwind_by_site(struct unwind_step *step)
{
    const struct means *means = step->means;
    struct snapshot *snapshot = step->observation->snapshot;
    struct program_tables *program = step->program;
    const struct site_keys keys = sites_keys(step->observation->tid, snapshot, step->stack);
    const struct site *own = sites_find(&program->sites, keys.own);
    const struct site *shared = sites_find(&program->sites, keys.shared);
    if (is_site_known(own))
        return unwind_by_known_site(step, own);
    uint64_t sp = registers_sp(&snapshot->registers);
    uint64_t expected = is_site_known(shared) ? sp + shared->distance : 0;
    if (frame_pointer_find(means->rules, program->maps.space, snapshot, means->max_depth,
                           &step->hints, expected, step->stack)) {
        int err = try_with_registers(step);
        bool is_right = !err && !step->is_asked && is_proof(step);
        return is_right ? learn_site(step, &keys) : err;
    }
    /* The stack holds the failed attempt: unwinds it again with what is known. */
    int err = try_with_registers(step);
    return err || step->is_asked || means->waits ? err : ask_for_stop(step, &keys);
}

/* The stack is cut because the frame pointer is not known: unwinds it with the frame pointer that
 * the thread is known to have, or that can be found; otherwise requests a stop, and sets is_asked.
 * Returns 0 or -ENOMEM. */
static int find_lost_registers(struct unwind_step *step)
{
    int err = unwind_as_stopped(step);
    if (!err && !step->is_asked && step->stack->cut == STACK_CUT_NO_REGISTER)
        err = unwind_by_site(step);
    return err;
}

/* The thread was stopped to learn the frame pointer of its site. That is known now, if it still
 * slept there. It is not stopped again for more of its stack, which can be read while it sleeps. If
 * its stack does not confirm the frame pointer, no thread is stopped there again. */
static int learn_from_stop(const struct unwind_step *step)
{
    const struct registers *registers = registers_of(step);
    const struct sleep_place *asked = &step->observation->stop.asked;
    const struct site_keys *keys = &step->thread->site;
    struct site *site = sites_find(&step->program->sites, key_to_ask_by(step, keys));
    if (registers_pc(registers) != asked->pc || registers_sp(registers) != asked->sp)
        return 0;
    if (is_proof(step) || step->is_asked) {
        keep_link(step);
        return learn_site(step, keys);
    }
    if (site)
        site->stops_left = 0;
    return 0;
}

/* Observations wait for the worker, and kernel samples for the next tick. */
#define REPLACED_UNSEEN_NS 20000000

/* Part of the stack was read after its thread had moved on, and may belong to another call. */
static bool is_mixed(const struct unwind_step *step)
{
    return step->observation->record.returned_ns && step->stack->cut != STACK_WHOLE &&
           step->hints.stack_bytes_used > step->observation->snapshot->stack.old_bytes;
}

/* What the kernel sampled or recorded can't be completed: by the time it is read, the thread is
 * elsewhere. It may be older than the maps, from a library that is gone or from the middle of an
 * execve; and a signal handler with its own stack hides the stack that it left. Such a sample's
 * time goes to the thread's other samples. */
static bool is_partial_sample(const struct unwind_step *step)
{
    const struct observation *observation = step->observation;
    const struct snapshot *snapshot = observation->snapshot;
    const struct program_maps *maps = &step->program->maps;
    uint64_t missing_address = step->hints.missing_address;
    if (observation->evidence != EVIDENCE_SAMPLED && !observation->record.returned_ns)
        return false;
    return is_mixed(step) || !space_find(maps->space, registers_pc(&snapshot->registers)) ||
           (missing_address && stack_areas_find(&maps->areas, missing_address)) ||
           (step->hints.needs_more_stack && !snapshot->stack.end_is_known);
}

/* Whether the observation is so much older than the replacement of code that it may be from the old
 * or the new code. */
static bool may_be_of_replaced_code(const struct unwind_step *step)
{
    const struct observation *observation = step->observation;
    uint64_t made_ns = observation->evidence == EVIDENCE_SAMPLED ? observation->sampled.at_ns
                                                                 : observation->now.at_ns;
    return made_ns + REPLACED_UNSEEN_NS < step->program->maps.replaced_ns;
}

/* A program that replaces code once will do so again. */
static int tell_of_replaced_code(const struct unwind_step *step)
{
    struct program_maps *maps = &step->program->maps;
    struct request request = {
        .kind = REQUEST_HURRY,
        .program = step->observation->program->number,
    };
    if (!maps->replaced_ns || maps->replaced_is_told)
        return 0;
    maps->replaced_is_told = true;
    return send_request(step, &request);
}

/* A thread of the kernel's own making, such as io_uring's, has never been elsewhere. */
static bool is_kernel_only(const struct registers *registers)
{
    return !registers_pc(registers) && !registers_sp(registers);
}

int unwind_observation(const struct means *means, const struct observation *observation,
                       struct program_tables *program, struct thread_unwinding *thread,
                       struct stack *stack, enum unwind_result *ret_result)
{
    struct unwind_step step = {
        .means = means,
        .observation = observation,
        .program = program,
        .thread = thread,
        .stack = stack,
    };
    if (is_kernel_only(&observation->snapshot->registers)) {
        stack->depth = 0;
        stack->cut = STACK_KERNEL_ONLY;
        *ret_result = UNWIND_DONE;
        return 0;
    }
    note_stopped_registers(&step);
    int err = unwind_step_run(&step);
    if (!err)
        err = ask_for_missing(&step);
    if (!err && !step.is_asked && stack->cut == STACK_CUT_NO_REGISTER)
        err = find_lost_registers(&step);
    if (!err && observation->evidence == EVIDENCE_STOPPED && observation->stop.asked.pc)
        err = learn_from_stop(&step);
    if (!err && !step.is_asked)
        err = adjust_stack_limits(&step);
    if (!err)
        err = tell_of_replaced_code(&step);
    if (!step.is_old)
        thread->tries = step.is_asked ? thread->tries + 1 : 0;
    /* What was mapped since its maps were read can't be known any more. */
    bool is_gone = step.hints.has_unknown_address && !program_is_current(observation->program);
    bool is_for_others = is_partial_sample(&step) || may_be_of_replaced_code(&step);
    *ret_result = step.is_asked || is_for_others ? UNWIND_ASKED
                  : is_gone                      ? UNWIND_GONE
                                                 : UNWIND_DONE;
    return err;
}
