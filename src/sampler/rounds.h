/* A round: all threads of all processes are looked at, and those that run are stopped, each when it
 * is its turn on a CPU. A thread that has not stopped by the next tick holds up no other: it waits
 * on, and what it missed is counted with its next stack. All return 0 or -ENOMEM. */
#ifndef FGPROF_SAMPLER_ROUNDS_H
#define FGPROF_SAMPLER_ROUNDS_H

#include "sampler/state.h"

/* How long after each other threads that have not stopped yet are looked at, if their stop was not
 * heard of. */
#define ROUNDS_LOOK_PERIOD_NS 1000000

/* Looks at all threads that are due. */
int rounds_begin(struct sampler *sampler);

/* Serves the worker, goes on with stops, and sends what has come of it. */
int rounds_continue(struct sampler *sampler);

/* The last round, once the recording has an end: all that a dump takes. Then the worker is told of
 * the end of each thread's time. */
int rounds_finish(struct sampler *sampler);

#endif
