/* Runs the calling thread before others while it holds a thread stopped, and only then. */
#ifndef FGPROF_PROC_PRIORITY_H
#define FGPROF_PROC_PRIORITY_H

#include <stdbool.h>

/* A stopped thread waits for us: on a busy machine, for as long as we wait for a CPU, which is
 * milliseconds for an ordinary thread. If permitted, we therefore run first, but only then: a
 * sampler that took a CPU first at every tick would preempt a thread's peers and see them asleep
 * when they would be running. *runs_first says what is in force. It starts false, and stays so if
 * that is not permitted or the thread has a policy of its own. */
void priority_run_first(bool *runs_first);
void priority_run_as_others(bool *runs_first);

#endif
