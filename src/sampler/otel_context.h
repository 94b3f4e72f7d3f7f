/* What threads say they work on (observe/thread_context.h), for samples that become known after the
 * fact: those that the kernel took, and completed times off the CPU. */
#ifndef FGPROF_SAMPLER_OTEL_CONTEXT_H
#define FGPROF_SAMPLER_OTEL_CONTEXT_H

#include "sampler/state.h"

/* A look found the thread running: notes its context, to know later whether it has changed. */
void otel_context_note_running(struct sampler *sampler, const struct sampled_process *process,
                               struct thread *thread);

/* Reads the context into the snapshot. The thread may work on something else by now than at the
 * time of the snapshot. NULL: there is none, or memory is short. */
struct thread_context *otel_context_read_late(struct sampler *sampler,
                                              const struct sampled_process *process,
                                              const struct thread *thread,
                                              struct snapshot *snapshot);

/* The same for a sample of the thread, collected up to a tick after it was taken. Notes whether the
 * context may have been another one when the sample was taken: no look found this context before
 * the sample, or the thread was switched since that look. */
void otel_context_read_sampled(struct sampler *sampler, const struct sampled_process *process,
                               struct thread *thread, struct observation *observation);

#endif
