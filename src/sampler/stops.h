/* Stops the threads that are to be stopped, and takes in what that brings. */
#ifndef FGPROF_SAMPLER_STOPS_H
#define FGPROF_SAMPLER_STOPS_H

#include "sampler/state.h"

/* Goes on with the stops of all processes as far as it can without waiting for long. Returns 0 or
 * -ENOMEM. */
int stops_continue(struct sampler *sampler);

/* Whether a thread that was asked to stop has not stopped yet. */
bool stops_are_pending(const struct sampler *sampler);

/* Notes ends of processes that were seen while stopping their first threads. */
void stops_note_exits(struct sampler *sampler);

#endif
