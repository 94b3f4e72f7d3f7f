/* Threads that never moved in the whole recording: their samples may be dropped at its end. They
 * are still alive then, so none of their ids belonged to another thread before. */
#ifndef FGPROF_WORKER_IDLE_H
#define FGPROF_WORKER_IDLE_H

#include "worker/results.h"

#include <stdbool.h>

/* Adds a thread that lives at the recording's end and never moved. Returns 0 or -ENOMEM. */
int idle_note(struct results *results, pid_t tid);

/* To be called when all were added, before the functions below. */
void idle_sort(struct results *results);

bool idle_has(const struct results *results, uint32_t thread_id);

/* Drops the samples and timelines of these threads. Clears the ids of the other samples unless
 * `keeps_ids`. */
void idle_drop(struct results *results, bool keeps_ids);

#endif
