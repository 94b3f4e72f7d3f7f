/* Threads that never moved in the whole recording, whose samples are dropped if they are not
 * wanted. Only at its end is it known which they are; they are all still there then, so that none
 * of their ids was another's before. */
#ifndef FGPROF_WORKER_IDLE_H
#define FGPROF_WORKER_IDLE_H

#include "worker/results.h"

/* Notes a thread, which is there at the recording's end, as one that never moved. Returns 0 or
 * -ENOMEM. */
int idle_note(struct results *results, pid_t tid);

/* Drops the samples and timelines of those that were noted. After that the other samples do not
 * tell threads of the same name apart, unless their ids are to be kept. */
void idle_drop(struct results *results, bool keeps_ids);

#endif
