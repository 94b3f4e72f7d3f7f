/* What threads say they work on (observe/thread_context.h), for threads that the kernel samples: it
 * is read when the sample is collected, up to a tick after it was taken. */
#ifndef FGPROF_SAMPLER_OTEL_CONTEXT_H
#define FGPROF_SAMPLER_OTEL_CONTEXT_H

#include "sampler/state.h"

/* A look found the thread running: notes its context, to know later whether it has changed. */
void otel_context_note_running(struct sampler *sampler, const struct sampled_process *process,
                               struct thread *thread);

/* Reads the context for a sample of the thread, and notes whether it may have been another one when
 * the sample was taken: no look found this one before the sample, or the thread was switched since
 * that look. */
void otel_context_read_sampled(struct sampler *sampler, const struct sampled_process *process,
                               struct thread *thread, struct observation *observation);

#endif
