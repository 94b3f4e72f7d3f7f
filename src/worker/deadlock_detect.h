/* Finds deadlocks while recording: threads that wait for each other in a cycle.
 *
 * A thread's owner is read at one moment, and that of the next thread at another: in between locks
 * may have changed hands, so that a cycle may be made of waits that were never there together. It
 * is a deadlock if each owner was read when all threads of the cycle were asleep already, and none
 * has moved since: a sleeping thread releases nothing. */
#ifndef FGPROF_WORKER_DEADLOCK_DETECT_H
#define FGPROF_WORKER_DEADLOCK_DETECT_H

#include "worker/owners.h"

/* Stores which thread this one waits for, and adds a deadlock to the results if that closes a new
 * cycle. Returns 0 or -ENOMEM. */
int deadlock_detect(struct owners *owners, struct results *results, const struct held_wait *held);

#endif
