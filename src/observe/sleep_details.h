/* The details of a sleeping thread that are read besides its stack: where it waits in the kernel,
 * what it waits for, the kernel's stack, and what the thread says it works on. */
#ifndef FGPROF_OBSERVE_SLEEP_DETAILS_H
#define FGPROF_OBSERVE_SLEEP_DETAILS_H

#include "observe/subject.h"
#include "observe/watch.h"

/* Reads the details into the observation, whose state, system call and registers are set. Returns 0
 * or -ENOMEM. */
int sleep_details_read(const struct subject *subject, const struct watch_place *place,
                       struct watch *watch, struct observation *observation);

/* Removes the details: the thread moved while they were read, so they may belong to another
 * wait. */
void sleep_details_drop(const struct subject *subject, struct observation *observation);

/* Reads the memory that shows what the thread waits for, in the noted call. */
void sleep_details_read_call(const struct subject *subject, struct observation *observation);

/* Reads now and then, for a thread that waits for others, how many of its switches were
 * preemptions; its other switches were waits. Does nothing for a thread that has never moved. */
void sleep_details_read_preemptions(const struct watch_place *place, struct watch *watch,
                                    struct observation *observation);

#endif
