/* A round observes all due threads of all processes, and stops running threads, each when it gets a
 * CPU. A thread that has not stopped by the next tick does not delay others: its stop stays
 * pending, and the ticks that it missed are counted with its next stack. Functions return 0 or
 * -ENOMEM. */
#ifndef FGPROF_SAMPLER_ROUNDS_H
#define FGPROF_SAMPLER_ROUNDS_H

#include "sampler/state.h"

/* How often threads that have not stopped yet are looked at, if no signal reports their stop. */
#define ROUNDS_LOOK_PERIOD_NS 1000000

/* Observes all threads that are due. */
int rounds_begin(struct sampler *sampler);

/* Looks at all threads in the next rounds, even at threads that have slept for long. */
void rounds_sweep(struct sampler *sampler);

/* Whether the last round had no time for all threads that were due. */
bool rounds_have_looks_left(const struct sampler *sampler);

/* Serves the worker's requests, continues stops, and sends their results. */
int rounds_continue(struct sampler *sampler);

/* The last round, once the recording has an end; the only round of a dump. Then reports each
 * thread's end to the worker. */
int rounds_finish(struct sampler *sampler);

#endif
