/* Finds deadlocks while recording: threads that wait for each other in a cycle.
 *
 * The owners of two threads in a cycle are read at different moments: in between, locks may have
 * changed hands, so a cycle may consist of waits that never existed at the same time. It is a
 * deadlock if each owner was read when all threads of the cycle were already asleep, and none has
 * moved since: a sleeping thread releases nothing. */
#ifndef FGPROF_WORKER_DEADLOCK_DETECT_H
#define FGPROF_WORKER_DEADLOCK_DETECT_H

#include "worker/owners.h"

/* Stores which thread this one waits for, and adds a deadlock to the results if that completes a
 * new cycle. Returns 0 or -ENOMEM. */
int deadlock_detect(struct owners *owners, struct results *results, const struct held_wait *held);

#endif
