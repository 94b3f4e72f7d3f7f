/* Sleeps that are over before the look at their thread. Where the kernel samples running threads,
 * and does not record switches, events show them for some threads (observe/switches.h). */
#ifndef FGPROF_SAMPLER_SHORT_SLEEPS_H
#define FGPROF_SAMPLER_SHORT_SLEEPS_H

#include "sampler/state.h"

/* Decides whether the thread has an event, by how often it has switched lately. */
void short_sleeps_decide(struct sampler *sampler, const struct sampled_process *process,
                         const struct thread *thread);

/* A look has found that the thread sleeps on: after a while it has no event any more. */
void short_sleeps_note_unmoved(struct sampler *sampler, const struct thread *thread);

/* Between ticks: recording begins shortly before the tick at `tick_ns`. Returns when to call this
 * again; UINT64_MAX: not before the tick. */
uint64_t short_sleeps_begin(struct sampler *sampler, uint64_t tick_ns);
/* The looks for the tick are over. */
void short_sleeps_stop(struct sampler *sampler);

/* Corrects what a look through /proc at this subject has found, and returns the outcome: see
 * switches_observe_at_tick. */
enum outcome short_sleeps_observe(struct sampler *sampler, const struct sampled_process *process,
                                  const struct thread *thread, uint64_t tick,
                                  const struct subject *subject, enum outcome outcome,
                                  struct observation *observation);

#endif
