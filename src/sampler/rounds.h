/* A round: all threads of all processes are looked at, and running ones are stopped, each when it
 * gets a CPU. A thread that has not stopped by the next tick holds up no other: it keeps waiting,
 * and what it missed is counted with its next stack. Functions return 0 or -ENOMEM. */
#ifndef FGPROF_SAMPLER_ROUNDS_H
#define FGPROF_SAMPLER_ROUNDS_H

#include "sampler/state.h"

/* How often threads that have not stopped yet are looked at, if no signal tells of their stop. */
#define ROUNDS_LOOK_PERIOD_NS 1000000

/* Looks at all threads that are due. */
int rounds_begin(struct sampler *sampler);

/* Looks at all threads in the next rounds, even at those that have slept for long. */
void rounds_sweep(struct sampler *sampler);

/* Whether the last round had no time for all threads that were due. */
bool rounds_have_looks_left(const struct sampler *sampler);

/* Serves the worker, continues stops, and sends what they bring. */
int rounds_continue(struct sampler *sampler);

/* The last round, once the recording has an end; a dump takes nothing else. Then the worker is told
 * of the end of each thread's time. */
int rounds_finish(struct sampler *sampler);

#endif
