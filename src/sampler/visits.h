/* Visits to the CPUs that threads run on, to stop them there (sampler/taken_cpu.h says why):
 * between two ticks the sampling thread goes to the CPUs of threads that have run, one after the
 * other, and wakes up there at a random moment. A visit finds a thread by chance only, as a tick
 * does: were it made because a look found the thread running, it would find it in longer bursts
 * than it has. */
#ifndef FGPROF_SAMPLER_VISITS_H
#define FGPROF_SAMPLER_VISITS_H

#include "sampler/state.h"

/* Goes to the CPU of the next thread that is to be visited before `tick_ns`, if no visit is due
 * yet. Returns when the visit is due; UINT64_MAX: there is none. */
uint64_t visits_plan(struct sampler *sampler, uint64_t tick_ns);

/* If the visit is due, asks to stop the thread that lost its CPU to us. */
void visits_take(struct sampler *sampler, uint64_t now_ns);

/* Goes back to all CPUs: a tick is taken, or sampling ends. */
void visits_end(struct sampler *sampler);

#endif
