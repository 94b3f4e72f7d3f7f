/* From an observation's snapshot to a stack. If the snapshot alone is not enough, these help: maps
 * read anew, generated code, a frame pointer that is found, or a request for another
 * observation. */
#ifndef FGPROF_WORKER_FOLLOW_H
#define FGPROF_WORKER_FOLLOW_H

#include "worker/following.h"

enum follow_result {
    FOLLOW_DONE,  /* count the stack */
    FOLLOW_ASKED, /* the thread is observed again, and this stack is counted only if that does not
                     happen */
    FOLLOW_GONE,  /* it leads through unknown code, and its program has ended */
};

/* Unwinds the snapshot of `observation` into `stack`; the space of `program` is known. Returns 0 or
 * -ENOMEM. */
int follow(const struct following_means *means, const struct observation *observation,
           struct program_tables *program, struct thread_unwinding *thread, struct stack *stack,
           enum follow_result *ret_result);

#endif
