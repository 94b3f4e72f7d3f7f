/* Visits to the CPUs on which threads run, to stop them there (sampler/taken_cpu.h says why):
 * between two ticks the sampling thread moves to the CPUs of threads that have run, one after the
 * other, and wakes up there at a random time. A visit must find a thread by chance only, like a
 * tick: if it were made because a look found the thread running, it would favour longer bursts. */
#ifndef FGPROF_SAMPLER_VISITS_H
#define FGPROF_SAMPLER_VISITS_H

#include "sampler/state.h"

/* Unless a visit is already planned, goes to the CPU of the next thread to visit before `tick_ns`.
 * Returns when the visit is due; UINT64_MAX: there is none. */
uint64_t visits_plan(struct sampler *sampler, uint64_t tick_ns);

/* If the visit is due, requests a stop of the thread that lost its CPU to us. */
void visits_take(struct sampler *sampler, uint64_t now_ns);

/* A tick is taken, or sampling ends: allows the sampling thread on all its CPUs again. */
void visits_end(struct sampler *sampler);

#endif
