/* Reads the goroutines of Go programs without stopping them, and reports changes. */
#ifndef FGPROF_SAMPLER_GOROUTINES_H
#define FGPROF_SAMPLER_GOROUTINES_H

#include "sampler/state.h"

/* These functions return 0 or -ENOMEM. */

/* The worker has found the program's runtime. */
int goroutines_begin(struct sampler *sampler, struct sampled_process *process,
                     const struct go_place *place);

/* Reads as many goroutines as a tick has time for. */
int goroutines_update(struct sampler *sampler, struct sampled_process *process);

/* Reports that parked goroutines are still there, as far as is known. */
int goroutines_report(struct sampler *sampler, struct sampled_process *process);

/* The recording ends: reads all goroutines once more. */
int goroutines_finish(struct sampler *sampler, struct sampled_process *process);

/* The program has ended. */
void goroutines_forget(struct sampled_goroutines *goroutines);

#endif
