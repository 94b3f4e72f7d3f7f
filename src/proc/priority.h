/* Runs the calling thread before others while it holds one stopped, and only then. */
#ifndef FGPROF_PROC_PRIORITY_H
#define FGPROF_PROC_PRIORITY_H

#include <stdbool.h>

/* While a thread is stopped it waits for us: on a busy machine for as long as the scheduler lets us
 * wait for a CPU, which is milliseconds for an ordinary thread. Where we may, we run first then,
 * and only then: a sampler that takes a CPU at each tick before anybody else finds asleep who would
 * be running, because it has just stopped whom they work for. *runs_first is what is in force; it
 * is false at first, and stays so where it is not permitted, or the thread has a policy of its own.
 */
void priority_run_first(bool *runs_first);
void priority_run_as_others(bool *runs_first);

#endif
