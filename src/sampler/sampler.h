/* The sampling thread keeps time, observes threads and lets them go. It unwinds nothing, reads no
 * ELF file, and waits neither for the worker nor for a lock. */
#ifndef FGPROF_SAMPLER_SAMPLER_H
#define FGPROF_SAMPLER_SAMPLER_H

#include "sampler/state.h"

/* `options` and `channel` must outlive it. Returns 0 or a negative errno. */
int sampler_init(struct sampler *sampler, const struct sampler_options *options,
                 struct channel *channel);
void sampler_free(struct sampler *sampler);

/* Opens the sources that sample running threads, which may take some milliseconds, so that no
 * samples are lost once the clock starts. May be called again. A dump opens them only if it finds a
 * running thread. Returns 0 or -ENOMEM. */
int sampler_prepare(struct sampler *sampler);

/* Samples until the duration has passed, all processes have exited, or it is asked to stop; then
 * sends MESSAGE_END. Call it once, in a thread of its own that ends afterwards. Returns 0 or why
 * sampling ended early. */
int sampler_run(struct sampler *sampler);

/* Ends sampling soon. Safe to call from any thread or signal handler. */
void sampler_stop(struct sampler *sampler);

#endif
