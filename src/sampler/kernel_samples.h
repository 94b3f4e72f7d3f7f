/* Takes the kernel's samples (observe/perf_source.h). */
#ifndef FGPROF_SAMPLER_KERNEL_SAMPLES_H
#define FGPROF_SAMPLER_KERNEL_SAMPLES_H

#include "sampler/state.h"

/* Opens the source, if the options want it and it is permitted, and follows the processes that were
 * added so far. Does nothing on later calls. Returns 0, -ENOMEM, or why there is no source although
 * the options require it. */
int kernel_samples_begin(struct sampler *sampler);

/* The process is sampled from now on, or once the source is open. Returns 0 or -ENOMEM. */
int kernel_samples_follow(struct sampler *sampler, pid_t process_id);

/* Whether the thread's samples come from the kernel when it runs, so that it need not be stopped.
 * `running_ns`: its running time, as in struct activity; 0 if it is not known. A dump opens the
 * source here, for the first thread that it finds running, and waits briefly for one sample of each
 * running thread. */
bool kernel_samples_cover(struct sampler *sampler, const struct sampled_process *process,
                          struct thread *thread, uint64_t running_ns);

/* Sends the worker all samples of known threads. Other samples are held until the threads are
 * listed; `is_listed`: they have been, so the remaining samples are dropped. Returns 0 or
 * -ENOMEM. */
int kernel_samples_take(struct sampler *sampler, bool is_listed);

void kernel_samples_end(struct sampler *sampler);

#endif
