#include "worker/lost_registers.h"
#include "base/clock.h"
#include "unwind/frame_pointer.h"
#include "worker/wants.h"

#include <errno.h>

static struct registers *registers_of(const struct following *following)
{
    return &following->observation->snapshot->registers;
}

void lost_registers_note(struct following *following)
{
    const struct registers *registers = registers_of(following);
    struct thread_unwinding *thread = following->thread;
    if (!registers_has(registers, architecture.frame_pointer) ||
        !registers_has(registers, architecture.base_pointer))
        return;
    thread->stopped_sp = registers_sp(registers);
    thread->stopped_frame_pointer = registers->values[architecture.frame_pointer];
    thread->stopped_base_pointer = registers->values[architecture.base_pointer];
}

static int try_with_registers(struct following *following)
{
    int err = following_unwind(following);
    return err ? err : wants_ask(following);
}

static bool is_known(const struct site *site)
{
    return site && site->is_known;
}

/* Finds the site, or adds it if it is not there. NULL if memory is short. */
static struct site *site_of(struct sites *sites, uint64_t key)
{
    struct site *site = sites_find(sites, key);
    return site || sites_add(sites, key) ? site : sites_find(sites, key);
}

static int learn_distance(const struct following *following, uint64_t key)
{
    const struct registers *registers = registers_of(following);
    struct site *site = site_of(&following->program->sites, key);
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
static int learn(const struct following *following, const struct site_keys *keys)
{
    int err = learn_distance(following, keys->own);
    return err || is_known(sites_find(&following->program->sites, keys->shared))
               ? err
               : learn_distance(following, keys->shared);
}

/* The key of the site to stop the thread for. */
static uint64_t key_to_ask_by(const struct following *following, const struct site_keys *keys)
{
    return is_known(sites_find(&following->program->sites, keys->shared)) ? keys->own
                                                                          : keys->shared;
}

/* A thread stopped by a signal stays stopped, and no call of it is disturbed. */
static bool may_stop_asleep(const struct observation *observation)
{
    return observation->state == THREAD_STOPPED ||
           registers_call_survives_stop(observation->syscall_number);
}

/* Asks to be told the thread's registers when it sleeps again. */
static int ask_for_registers(struct following *following)
{
    struct request request = {.kind = REQUEST_REGISTERS};
    if (following->thread->wants_registers)
        return 0;
    following->thread->wants_registers = true;
    return following_request(following, &request);
}

/* Asks to stop the thread, if that is allowed, to learn the frame pointer of its site. */
static int ask_for_stop(struct following *following, const struct site_keys *keys)
{
    const struct observation *observation = following->observation;
    const struct registers *registers = registers_of(following);
    struct sites *sites = &following->program->sites;
    struct site *site = site_of(sites, key_to_ask_by(following, keys));
    if (!site)
        return -ENOMEM;
    /* Another thread is to be stopped there: what that told is known in the next round. */
    if (site->asked_ns >= observation->round_ns) {
        struct request request = {.kind = REQUEST_LATER};
        return following_request(following, &request);
    }
    if (!site->stops_left || !may_stop_asleep(observation))
        return ask_for_registers(following);
    site->stops_left--;
    site->asked_ns = monotonic_ns();
    following->thread->site = *keys;
    following->is_asked = true;
    struct request request = {
        .kind = REQUEST_FRAME_POINTER,
        .asleep = {registers_pc(registers), registers_sp(registers), observation->state,
                   observation->syscall_number},
    };
    return following_request(following, &request);
}

/* A thread that sleeps in a page fault and was once stopped with the same stack pointer is usually
 * in the same call, with the frame pointer that it had then. That is believed if it makes the stack
 * whole; otherwise the stack stays as it was. */
static int unwind_as_stopped(struct following *following)
{
    const struct thread_unwinding *thread = following->thread;
    struct registers *registers = registers_of(following), blocked = *registers;
    if (following->observation->syscall_number >= 0 ||
        registers_sp(registers) != thread->stopped_sp)
        return 0;
    registers_set(registers, architecture.frame_pointer, thread->stopped_frame_pointer);
    registers_set(registers, architecture.base_pointer, thread->stopped_base_pointer);
    int err = try_with_registers(following);
    if (err || following->is_asked || following_is_proof(following))
        return err;
    *registers = blocked;
    return try_with_registers(following);
}

static int unwind_by_known_site(struct following *following, const struct site *site)
{
    struct registers *registers = registers_of(following);
    uint64_t sp = registers_sp(registers);
    registers_set(registers, architecture.frame_pointer, sp + site->distance);
    if (site->has_base_pointer)
        registers_set(registers, architecture.base_pointer, sp + site->base_distance);
    return try_with_registers(following);
}

static int unwind_by_site(struct following *following)
{
    const struct following_means *means = following->means;
    struct snapshot *snapshot = following->observation->snapshot;
    struct program_tables *program = following->program;
    const struct site_keys keys =
        sites_keys(following->observation->tid, snapshot, following->stack);
    const struct site *own = sites_find(&program->sites, keys.own);
    const struct site *shared = sites_find(&program->sites, keys.shared);
    if (is_known(own))
        return unwind_by_known_site(following, own);
    uint64_t sp = registers_sp(&snapshot->registers);
    uint64_t expected = is_known(shared) ? sp + shared->distance : 0;
    if (frame_pointer_find(means->unwinder, program->maps.space, snapshot, means->max_depth,
                           &following->hints, expected, following->stack)) {
        int err = try_with_registers(following);
        bool is_right = !err && !following->is_asked && following_is_proof(following);
        return is_right ? learn(following, &keys) : err;
    }
    /* The stack holds what was tried: unwinds it again with what is known. */
    int err = try_with_registers(following);
    return err || following->is_asked || !means->may_stop_sleepers ? err
                                                                   : ask_for_stop(following, &keys);
}

int lost_registers_find(struct following *following)
{
    int err = unwind_as_stopped(following);
    if (!err && !following->is_asked && following->stack->cut == STACK_CUT_NO_REGISTER)
        err = unwind_by_site(following);
    return err;
}

/* The thread was stopped to learn the frame pointer of its site: that is known now, if it still
 * slept there. For more of its stack it is not stopped again: that can be read while it sleeps. If
 * its stack does not prove it right, no thread is stopped there again. */
int lost_registers_learn(const struct following *following)
{
    const struct registers *registers = registers_of(following);
    const struct sleep_place *asked = &following->observation->asked;
    const struct site_keys *keys = &following->thread->site;
    struct site *site = sites_find(&following->program->sites, key_to_ask_by(following, keys));
    if (registers_pc(registers) != asked->pc || registers_sp(registers) != asked->sp)
        return 0;
    if (following_is_proof(following) || following->is_asked)
        return learn(following, keys);
    if (site)
        site->stops_left = 0;
    return 0;
}
