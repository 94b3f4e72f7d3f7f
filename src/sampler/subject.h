/* Describes a thread to the sources of observations. */
#ifndef FGPROF_SAMPLER_SUBJECT_H
#define FGPROF_SAMPLER_SUBJECT_H

#include "sampler/state.h"

/* What a source needs to observe the thread, and what is wanted of it. */
struct subject subject_of(const struct sampler *sampler, const struct sampled_process *process,
                          const struct thread *thread);

#endif
