#include "sampler/target_unwind.h"
#include "sampler/target_jit.h"
#include "sampler/target_space.h"
#include "mapping/space_check.h"
#include "unwind/frame_pointer.h"

#include <errno.h>

#define STACK_LIMIT_MIN (2u << 10)
#define STACK_LIMIT_MAX (16u << 20)
/* Of another stack, which a thread left in the middle of its use: what was called since then is
 * mostly gone, but at the next tick it may leave it deeper down. */
#define OTHER_STACK_BYTES (32u << 10)
#define OTHER_STACK_BYTES_MAX (1u << 20)
#define OTHER_STACK_BYTES_BELOW (4u << 10)

/* Sizes the next copy by what this one needed, with some room. */
static void adjust_stack_limit(struct thread *thread, size_t used)
{
    size_t wanted = used * 2;
    if (wanted < STACK_LIMIT_MIN)
        wanted = STACK_LIMIT_MIN;
    if (wanted > STACK_LIMIT_MAX)
        wanted = STACK_LIMIT_MAX;
    thread->stack_limit = wanted;
}

/* Whether what led to this stack, as a frame pointer that was found, is right. */
static bool is_proof(const struct stack *stack)
{
    return stack->cut == STACK_WHOLE || stack->cut == STACK_CUT_AT_MAX_DEPTH;
}

/* Whether to look for another stack at this tick. Where that has been in vain from about the same
 * place, it is tried at ever fewer ticks: a damaged stack leads anywhere, and each try stops a
 * thread that runs. From another place it may lead to the end: one that was in a signal handler has
 * left it. */
static bool may_look_elsewhere(struct thread *thread, uint64_t sp)
{
    if (thread->other_stack_tick != thread->looked_tick) {
        bool is_near = sp - thread->other_stack_from + OTHER_STACK_BYTES < 2 * OTHER_STACK_BYTES;
        thread->other_stack_misses = is_near ? thread->other_stack_misses + 1 : 1;
        thread->other_stack_tick = thread->looked_tick;
        thread->other_stack_from = sp;
    }
    return (thread->other_stack_misses & (thread->other_stack_misses - 1)) == 0;
}

/* The stack goes on at `address`, in another mapping: what is around there is to be copied too.
 * Returns whether that is likely to help: a damaged stack leads anywhere. */
static bool find_other_stack(struct target *target, struct thread *thread, uint64_t address)
{
    struct stack_place *other = &thread->other_stack;
    const struct stack_area *area = stack_areas_find(&target->stack_areas, address);
    if (!area && target_space_refresh_areas(target))
        area = stack_areas_find(&target->stack_areas, address);
    if (!area || !may_look_elsewhere(thread, registers_sp(&target->snapshot->registers)))
        return false;
    uint64_t room = address > area->start ? address - area->start : 0;
    uint64_t start = address - (room < OTHER_STACK_BYTES_BELOW ? room : OTHER_STACK_BYTES_BELOW);
    /* Not another stack again: coroutines may have theirs in one mapping. */
    uint64_t end = other->address + other->bytes;
    bool is_further = other->address && address >= end && address - end < OTHER_STACK_BYTES &&
                      address < area->end;
    if (is_further && other->bytes < OTHER_STACK_BYTES_MAX)
        other->bytes *= 8;
    else
        *other = (struct stack_place){start, OTHER_STACK_BYTES};
    return true;
}

/* Whether one of the files that the stack leads through has made way for another. */
static bool is_replaced(const struct target *target)
{
    return space_is_replaced(target->space, target->capture->request.tid, target->stack.addresses,
                             target->stack.depth, target->round_ns);
}

/* A thread that sleeps in what was mapped since this round's reading of maps is read again, once:
 * by the next round's it is known. */
static void note_unknown(struct thread *thread, bool has_unknown_address)
{
    if (has_unknown_address && !thread->leads_nowhere)
        thread_forget_sleep(thread);
    thread->leads_nowhere = has_unknown_address;
}

/* Unwinds the snapshot, if need be a second time with maps read anew. -EAGAIN: the copy of the
 * stack was too short, and a longer one is to be taken. */
static int unwind(struct target *target, struct thread *thread, struct unwind_hints *ret_hints)
{
    for (;;) {
        struct unwind_hints hints;
        bool maps_changed = false;
        int err = unwind_snapshot(target->recording->unwinder, target->space, target->snapshot,
                                  target->options->max_depth, &target->stack, &hints);
        if (!err && (hints.has_unknown_address || is_replaced(target)))
            err = target_space_refresh(target, &maps_changed);
        if (err)
            return err;
        bool has_learnt = false;
        if (!maps_changed && hints.unlearnt_address)
            err = target_jit_learn(target, hints.unlearnt_address, &has_learnt);
        if (err)
            return err;
        if (maps_changed || has_learnt)
            continue;
        if (hints.needs_more_stack && !target->snapshot->stack.end_is_known &&
            target_space_refresh_areas(target))
            return -EAGAIN;
        if (hints.needs_more_stack && target->snapshot->stack.end_is_known &&
            thread->stack_limit < STACK_LIMIT_MAX && !thread->has_endless_stack) {
            thread->stack_limit *= 8;
            if (thread->stack_limit > STACK_LIMIT_MAX)
                thread->stack_limit = STACK_LIMIT_MAX;
            return -EAGAIN;
        }
        /* Its unwind tables lead nowhere: copying ever more of its memory would only cost it time.
         */
        if (hints.needs_more_stack && target->snapshot->stack.end_is_known)
            thread->has_endless_stack = true;
        if (hints.missing_address && find_other_stack(target, thread, hints.missing_address))
            return -EAGAIN;
        if (!hints.used_other_stack)
            thread->other_stack.address = 0;
        /* What did not help may do so for another stack. */
        if (is_proof(&target->stack)) {
            thread->other_stack_misses = 0;
            thread->has_endless_stack = false;
        }
        note_unknown(thread, hints.has_unknown_address);
        *ret_hints = hints;
        /* Cut for want of a register, it says nothing of how much is needed with it. */
        if (target->stack.cut != STACK_CUT_NO_REGISTER)
            adjust_stack_limit(thread, hints.stack_bytes_used);
        return 0;
    }
}

static bool is_known(const struct site *site)
{
    return site && site->is_known;
}

/* The site, added where it is not there. NULL where memory is short. */
static struct site *site_of(struct sites *sites, uint64_t key)
{
    struct site *site = sites_find(sites, key);
    return site || sites_add(sites, key) ? site : sites_find(sites, key);
}

static int learn_distance(struct target *target, uint64_t key)
{
    const struct registers *registers = &target->snapshot->registers;
    struct site *site = site_of(&target->sites, key);
    if (!site)
        return -ENOMEM;
    uint64_t sp = registers_sp(registers);
    site->is_known = true;
    site->distance = registers->values[architecture.frame_pointer] - sp;
    site->has_base_pointer = registers_has(registers, architecture.base_pointer);
    site->base_distance = registers->values[architecture.base_pointer] - sp;
    return 0;
}

/* Remembers where the frame pointer of a thread is, and for others at its site. Returns 0 or
 * -ENOMEM. */
static int learn(struct target *target, const struct site_keys *keys)
{
    int err = learn_distance(target, keys->own);
    return err || is_known(sites_find(&target->sites, keys->shared))
               ? err
               : learn_distance(target, keys->shared);
}

/* Of which site a thread is to be stopped for want of the frame pointer. */
static uint64_t key_to_ask_by(const struct target *target, const struct site_keys *keys)
{
    return is_known(sites_find(&target->sites, keys->shared)) ? keys->own : keys->shared;
}

/* One stopped by a signal stays so, and no call of it is disturbed. */
static bool may_stop_asleep(const struct capture *capture)
{
    return capture->state == THREAD_STOPPED ||
           registers_call_survives_stop(capture->syscall_number);
}

/* Has the thread stopped, to learn the frame pointer of its site. Returns -EAGAIN then; 0 where it
 * is not to be stopped; or -ENOMEM. */
static int ask_for_stop(struct target *target, struct thread *thread, const struct site_keys *keys)
{
    const struct registers *registers = &target->snapshot->registers;
    struct site *site = site_of(&target->sites, key_to_ask_by(target, keys));
    if (!site)
        return -ENOMEM;
    if (site->asked_ns == target->round_ns) {
        /* Another thread is stopped there: it is known when this one is read again. */
        thread_forget_sleep(thread);
        return 0;
    }
    if (!site->stops_left || !may_stop_asleep(target->capture))
        return 0;
    site->stops_left--;
    site->asked_ns = target->round_ns;
    thread->must_stop = true;
    thread->site = *keys;
    thread->blocked = (struct blocked){
        .pc = registers_pc(registers),
        .sp = registers_sp(registers),
        .state = target->capture->state,
        .syscall_number = target->capture->syscall_number,
    };
    return -EAGAIN;
}

static void note_stopped(struct thread *thread, const struct registers *registers)
{
    if (!registers_has(registers, architecture.frame_pointer) ||
        !registers_has(registers, architecture.base_pointer))
        return;
    thread->stopped_sp = registers_sp(registers);
    thread->stopped_frame_pointer = registers->values[architecture.frame_pointer];
    thread->stopped_base_pointer = registers->values[architecture.base_pointer];
}

/* A thread that sleeps in a page fault has been stopped where its stack pointer was the same: it is
 * in the same call, as a rule, and has the frame pointer that it had then. That is believed where
 * the stack is whole with it, and else leaves it as it was. */
static int unwind_as_stopped(struct target *target, struct thread *thread,
                             struct unwind_hints *hints)
{
    struct registers *registers = &target->snapshot->registers, blocked = *registers;
    if (target->capture->syscall_number >= 0 || registers_sp(registers) != thread->stopped_sp)
        return 0;
    registers_set(registers, architecture.frame_pointer, thread->stopped_frame_pointer);
    registers_set(registers, architecture.base_pointer, thread->stopped_base_pointer);
    int err = unwind(target, thread, hints);
    if (err || is_proof(&target->stack))
        return err;
    *registers = blocked;
    return unwind(target, thread, hints);
}

/* The stack of a thread read asleep is cut for want of the frame pointer. Unwinds it with the one
 * that it is known to have, or that can be found; -EAGAIN where the thread is to be stopped once to
 * learn it. */
static int unwind_by_site(struct target *target, struct thread *thread, struct unwind_hints *hints)
{
    struct snapshot *snapshot = target->snapshot;
    struct registers *registers = &snapshot->registers;
    const struct site_keys keys = sites_keys(thread->tid, snapshot, &target->stack);
    const struct site *own = sites_find(&target->sites, keys.own);
    const struct site *shared = sites_find(&target->sites, keys.shared);
    if (is_known(own)) {
        uint64_t sp = registers_sp(registers);
        registers_set(registers, architecture.frame_pointer, sp + own->distance);
        if (own->has_base_pointer)
            registers_set(registers, architecture.base_pointer, sp + own->base_distance);
        return unwind(target, thread, hints);
    }
    uint64_t expected = is_known(shared) ? registers_sp(registers) + shared->distance : 0;
    if (frame_pointer_find(target->recording->unwinder, target->space, snapshot,
                           target->options->max_depth, hints, expected, &target->stack)) {
        int err = unwind(target, thread, hints);
        return !err && is_proof(&target->stack) ? learn(target, &keys) : err;
    }
    /* What was tried is in the stack: back to what is known. */
    int err = unwind(target, thread, hints);
    /* A dump stops no sleeper. */
    return err || target->recording->waits ? err : ask_for_stop(target, thread, &keys);
}

/* A thread was stopped to learn the frame pointer of its site: that is, where it still sleeps
 * there. It is not stopped again for more of its stack, which can be read while it sleeps. Where
 * that has not told, nobody is stopped there again. */
static int learn_site(struct target *target, const struct thread *thread, bool is_too_short)
{
    const struct registers *registers = &target->snapshot->registers;
    const struct blocked *blocked = &target->capture->request.blocked;
    struct site *site = sites_find(&target->sites, key_to_ask_by(target, &thread->site));
    if (registers_pc(registers) != blocked->pc || registers_sp(registers) != blocked->sp)
        return 0;
    if (is_proof(&target->stack) || is_too_short)
        return learn(target, &thread->site);
    if (site)
        site->stops_left = 0;
    return 0;
}

int target_unwind(struct target *target, struct thread *thread)
{
    struct unwind_hints hints;
    note_stopped(thread, &target->snapshot->registers);
    int err = unwind(target, thread, &hints);
    if (!err && target->stack.cut == STACK_CUT_NO_REGISTER)
        err = unwind_as_stopped(target, thread, &hints);
    if (!err && target->stack.cut == STACK_CUT_NO_REGISTER)
        err = unwind_by_site(target, thread, &hints);
    if (target->capture->request.blocked.pc && (!err || err == -EAGAIN)) {
        int learn_err = learn_site(target, thread, err == -EAGAIN);
        err = learn_err ? learn_err : err;
    }
    return err;
}
