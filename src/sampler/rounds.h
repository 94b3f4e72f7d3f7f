/* A round of each target: all threads are looked at, and those that run are stopped, each when it
 * is its turn on a CPU. */
#ifndef FGPROF_SAMPLER_ROUNDS_H
#define FGPROF_SAMPLER_ROUNDS_H

#include <stdbool.h>

struct fgprof_recorder;

/* How long after each other threads that have not stopped yet are looked at, where their stop was
 * not heard of. */
#define ROUNDS_LOOK_PERIOD_NS 1000000

/* Looks at all. Returns 0 or a negative errno, as all of these do. */
int rounds_begin(struct fgprof_recorder *recorder);

/* Asks those that run to stop, and takes in who has. */
int rounds_continue(struct fgprof_recorder *recorder);

/* Whether any that was asked has not stopped yet. */
bool rounds_are_pending(const struct fgprof_recorder *recorder);

/* The last round, once the recording has an end: all that a dump takes. Threads that do not stop in
 * time are let go when the sampling thread ends, which is when the kernel detaches whom it traces
 * (exit_ptrace in ptrace.c). */
int rounds_finish(struct fgprof_recorder *recorder);

#endif
