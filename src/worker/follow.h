/* From an observation's snapshot to a stack, with what helps if the snapshot alone does not do:
 * maps read anew, generated code, a frame pointer that is found, or a request for another
 * observation. */
#ifndef FGPROF_WORKER_FOLLOW_H
#define FGPROF_WORKER_FOLLOW_H

#include "worker/following.h"

enum follow_result {
    FOLLOW_DONE,  /* the stack is to be counted */
    FOLLOW_ASKED, /* more was asked for, so that the thread is observed again: the stack is to be
                     counted only if nothing comes of that */
    FOLLOW_GONE,  /* it leads through what is not known, of a program that is gone by now */
};

/* Unwinds the snapshot of `observation` into `stack`; the space of `program` is known. Returns 0 or
 * -ENOMEM. */
int follow(const struct following_means *means, const struct observation *observation,
           struct program_tables *program, struct thread_unwinding *thread, struct stack *stack,
           enum follow_result *ret_result);

#endif
