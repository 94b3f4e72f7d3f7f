/* Threads that never moved in the whole recording; their samples are dropped if they are not
 * wanted. Which threads these are is known only at its end. They are all still there then, so none
 * of their ids belonged to another thread before. */
#ifndef FGPROF_WORKER_IDLE_H
#define FGPROF_WORKER_IDLE_H

#include "worker/results.h"

#include <stdbool.h>

/* Notes a thread that is there at the recording's end as one that never moved. Returns 0 or
 * -ENOMEM. */
int idle_note(struct results *results, pid_t tid);

/* Call it when all have been noted, before the functions below. */
void idle_sort(struct results *results);

/* Whether the thread was noted. */
bool idle_has(const struct results *results, uint32_t thread_id);

/* Drops the samples and timelines of the noted threads. After that the other samples do not tell
 * threads of the same name apart, unless their ids are kept. */
void idle_drop(struct results *results, bool keeps_ids);

#endif
