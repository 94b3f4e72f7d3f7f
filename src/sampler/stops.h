/* Stops the threads that are marked for it, and handles the results. */
#ifndef FGPROF_SAMPLER_STOPS_H
#define FGPROF_SAMPLER_STOPS_H

#include "sampler/state.h"

/* Continues the stops of all processes as far as possible without waiting long. Returns 0 or
 * -ENOMEM. */
int stops_continue(struct sampler *sampler);

/* Releases threads that have stopped meanwhile, so that none waits for the end of a long round, but
 * not too often. Their copies are handled later. */
void stops_let_go(struct sampler *sampler);

/* The same, and handles the copies. Called in each round before checking whether processes run
 * other programs. Returns 0 or -ENOMEM. */
int stops_take(struct sampler *sampler);

/* Whether a thread that was asked to stop has not stopped yet. */
bool stops_are_pending(const struct sampler *sampler);

/* Notes the ends of processes that were seen while stopping their first threads. */
void stops_note_exits(struct sampler *sampler);

#endif
