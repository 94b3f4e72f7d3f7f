/* Threads that wait for a CPU, or sleep where a register is needed, observed by their switches
 * (observe/switches.h). */
#ifndef FGPROF_SAMPLER_SWITCH_EVENTS_H
#define FGPROF_SAMPLER_SWITCH_EVENTS_H

#include "sampler/state.h"

/* A look, `now`, has found that the thread moved, or runs. Decides whether the thread waits much
 * for a CPU, and whether it gets an event. */
void switch_events_note_look(struct sampler *sampler, const struct sampled_process *process,
                             struct thread *thread, const struct reading *now);

/* For a thread that a look, `now`, has just found not asleep. Returns whether it waits for a CPU
 * and was observed into `observation`, whose snapshot has room. */
bool switch_events_observe(struct sampler *sampler, const struct sampled_process *process,
                           struct thread *thread, const struct reading *now,
                           struct observation *observation);

/* The thread sleeps where its stack needs a register that /proc does not show: it gets an event. */
void switch_events_need_registers(struct sampler *sampler, struct thread *thread);

/* Adds the registers from a sleeping thread's event to those that were read in the look `now`. */
void switch_events_complete(struct sampler *sampler, struct thread *thread,
                            const struct reading *now, struct registers *registers);

/* The thread is gone, or is not counted any more, or it may be another one: closes all perf events
 * that it has. */
void switch_events_close(struct sampler *sampler, const struct thread *thread);

/* No thread has an event for its switches any more, and none gets one. */
void switch_events_end(struct sampler *sampler);

#endif
