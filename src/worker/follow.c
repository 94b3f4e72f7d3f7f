#include "worker/follow.h"
#include "worker/lost_registers.h"
#include "worker/wants.h"

int follow(const struct following_means *means, const struct observation *observation,
           struct program_tables *program, struct thread_unwinding *thread, struct stack *stack,
           bool *ret_is_asked)
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
    thread->tries = following.is_asked ? thread->tries + 1 : 0;
    *ret_is_asked = following.is_asked;
    return err;
}
