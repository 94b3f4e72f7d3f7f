#include "worker/follow.h"
#include "worker/lost_registers.h"
#include "worker/wants.h"

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
    if (!following.is_old)
        thread->tries = following.is_asked ? thread->tries + 1 : 0;
    /* What it has mapped since its maps were read will not be known any more. */
    bool is_gone = following.hints.has_unknown_address && !program_is_current(observation->program);
    *ret_result = following.is_asked ? FOLLOW_ASKED : is_gone ? FOLLOW_GONE : FOLLOW_DONE;
    return err;
}
