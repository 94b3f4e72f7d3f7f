/* The thread that samples: from tick to tick, a round of each target. */
#ifndef FGPROF_SAMPLER_SAMPLER_H
#define FGPROF_SAMPLER_SAMPLER_H

/* Samples until the end that the struct fgprof_recorder `context` asks for. The start of a thread
 * of its own: a tracer is a thread, and when it ends the kernel lets go whom it still traces. */
void *sampler_main(void *context);

#endif
