/* Tells the worker which threads each tick found awake, that is, running or waiting for a CPU:
 * elapsed time is divided among those (count/elapsed.h). */
#ifndef FGPROF_SAMPLER_AWAKE_H
#define FGPROF_SAMPLER_AWAKE_H

#include "sampler/state.h"

/* The looks of a tick begin: none was found awake yet. */
void awake_begin(struct sampled_process *process);

/* Adds the thread if its last look found it awake. Returns 0 or -ENOMEM. */
int awake_note(struct sampled_process *process, const struct thread *thread);

/* All observations of this tick are done. Ticks that found no thread awake are reported later,
 * together. Returns 0 or -ENOMEM. */
int awake_tell(struct sampler *sampler, struct sampled_process *process, uint64_t tick);

/* The process's time ends. Returns 0 or -ENOMEM. */
int awake_tell_end(struct sampler *sampler, struct sampled_process *process, uint64_t end_ns);

#endif
