#include "worker/follow.h"
#include "worker/lost_registers.h"
#include "worker/wants.h"

/* Observations wait for the worker, and kernel samples for the next tick. */
#define REPLACED_UNSEEN_NS 20000000

/* A stack that was over before it was read: its thread may have left what was read then. */
static bool is_mixed(const struct following *following)
{
    return following->observation->returned_ns && following->stack->cut != STACK_WHOLE &&
           following->hints.stack_bytes_used > following->observation->snapshot->stack.old_bytes;
}

/* What the kernel sampled or recorded can't be completed: by the time that it is read the thread is
 * elsewhere. It may be older than the maps, of a library that is gone or from the middle of an
 * execve; and a signal handler with its own stack hides the stack that it left. Such a sample's
 * time goes to the thread's other samples. */
static bool is_partial_sample(const struct following *following)
{
    const struct observation *observation = following->observation;
    const struct snapshot *snapshot = observation->snapshot;
    const struct program_maps *maps = &following->program->maps;
    uint64_t missing_address = following->hints.missing_address;
    if (observation->evidence != EVIDENCE_SAMPLED && !observation->returned_ns)
        return false;
    return is_mixed(following) || !space_find(maps->space, registers_pc(&snapshot->registers)) ||
           (missing_address && stack_areas_find(&maps->areas, missing_address)) ||
           (following->hints.needs_more_stack && !snapshot->stack.end_is_known);
}

/* It was made so long before other code was found where some had been that it may have led through
 * either. */
static bool may_be_of_replaced_code(const struct following *following)
{
    const struct observation *observation = following->observation;
    uint64_t made_ns = observation->evidence == EVIDENCE_SAMPLED ? observation->sampled_ns
                                                                 : observation->now.at_ns;
    return made_ns + REPLACED_UNSEEN_NS < following->program->maps.replaced_ns;
}

/* A program that replaces code once will do so again. */
static int tell_of_replaced_code(const struct following *following)
{
    struct program_maps *maps = &following->program->maps;
    struct request request = {
        .kind = REQUEST_HURRY,
        .program = following->observation->program->number,
    };
    if (!maps->replaced_ns || maps->replaced_is_told)
        return 0;
    maps->replaced_is_told = true;
    return following_request(following, &request);
}

int follow(const struct following_means *means, const struct observation *observation,
           struct program_tables *program, struct thread_unwinding *thread, struct stack *stack,
           enum follow_result *ret_result)
{
    struct following following = {
        .means = means,
        .observation = observation,
        .program = program,
        .thread = thread,
        .stack = stack,
    };
    lost_registers_note(&following);
    int err = following_unwind(&following);
    if (!err)
        err = wants_ask(&following);
    if (!err && !following.is_asked && stack->cut == STACK_CUT_NO_REGISTER)
        err = lost_registers_find(&following);
    if (!err && observation->asked.pc)
        err = lost_registers_learn(&following);
    if (!err && !following.is_asked)
        err = wants_adjust(&following);
    if (!err)
        err = tell_of_replaced_code(&following);
    if (!following.is_old)
        thread->tries = following.is_asked ? thread->tries + 1 : 0;
    /* What it has mapped since its maps were read will not be known any more. */
    bool is_gone = following.hints.has_unknown_address && !program_is_current(observation->program);
    bool is_for_others = is_partial_sample(&following) || may_be_of_replaced_code(&following);
    *ret_result = following.is_asked || is_for_others ? FOLLOW_ASKED
                  : is_gone                           ? FOLLOW_GONE
                                                      : FOLLOW_DONE;
    return err;
}
