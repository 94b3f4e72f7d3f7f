/* Stops the threads that are marked for it, and takes in the results. */
#ifndef FGPROF_SAMPLER_STOPS_H
#define FGPROF_SAMPLER_STOPS_H

#include "sampler/state.h"

/* Continues the stops of all processes as far as possible without waiting for long. Returns 0 or
 * -ENOMEM. */
int stops_continue(struct sampler *sampler);

/* Whether a thread that was asked to stop has not stopped yet. */
bool stops_are_pending(const struct sampler *sampler);

/* Notes the ends of processes that were seen while stopping their first threads. */
void stops_note_exits(struct sampler *sampler);

#endif
