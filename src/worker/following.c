#include "worker/following.h"
#include "base/clock.h"
#include "mapping/space.h"

int following_request(const struct following *following, struct request *request)
{
    bool wants_observation = request->kind == REQUEST_STACK_ANEW || request->kind == REQUEST_ANEW ||
                             request->kind == REQUEST_FRAME_POINTER;
    if (wants_observation)
        request->serial = ++following->thread->asked;
    request->thread = following->observation->thread;
    request->tid = following->observation->tid;
    return channel_request(following->means->channel, request);
}

/* Whether one of the files that the stack leads through has been replaced. */
static bool is_replaced(const struct following *following)
{
    const struct observation *observation = following->observation;
    const struct stack *stack = following->stack;
    return space_is_replaced(following->program->maps.space, observation->tid, stack->addresses,
                             stack->depth, observation->round_ns, monotonic_ns());
}

/* Gets what the unwinder lacked, if it is here. *ret_has_more: unwinding may now get further. */
static int serve(struct following *following, bool *ret_has_more)
{
    const struct following_means *means = following->means;
    const struct observation *observation = following->observation;
    const struct unwind_hints *hints = &following->hints;
    struct program_tables *program = following->program;
    int err = 0;
    *ret_has_more = false;
    if (hints->has_unknown_address || is_replaced(following))
        err = program_maps_refresh(&program->maps, means->results, observation, ret_has_more);
    if (!err && !*ret_has_more && hints->unlearnt_address)
        err = generated_learn(&program->generated, means->unwinder, program->maps.space,
                              observation->program, hints->unlearnt_address, ret_has_more);
    return err;
}

/* This ends: maps are reread once or a few times, and each address of generated code is learnt
 * once. */
int following_unwind(struct following *following)
{
    const struct following_means *means = following->means;
    bool has_more;
    int err;
    do {
        err = unwind_snapshot(means->unwinder, following->program->maps.space,
                              following->observation->snapshot, means->max_depth, following->stack,
                              &following->hints);
        if (!err)
            err = serve(following, &has_more);
    } while (!err && has_more);
    return err;
}
