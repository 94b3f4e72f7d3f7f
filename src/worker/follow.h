/* From an observation's snapshot to a stack, with what helps if the snapshot alone does not do:
 * maps read anew, generated code, a frame pointer that is found, or a request for another
 * observation. */
#ifndef FGPROF_WORKER_FOLLOW_H
#define FGPROF_WORKER_FOLLOW_H

#include "worker/following.h"

/* Unwinds the snapshot of `observation` into `stack`; the space of `program` is known.
 * *ret_is_asked: more was asked for, so that the thread is observed again: what was found is to be
 * counted only if that does not happen. Returns 0 or -ENOMEM. */
int follow(const struct following_means *means, const struct observation *observation,
           struct program_tables *program, struct thread_unwinding *thread, struct stack *stack,
           bool *ret_is_asked);

#endif
