/* Stopping one thread by ptrace, for as long as it takes to copy it.
 *
 * SEIZE does not pause it, INTERRUPT does, DETACH lets it go; between samples it is not traced.
 * No more than one thread of a process is held at a time: an exec elsewhere in it waits for us to
 * collect the one we hold, while our SEIZE of the next would wait for the exec.
 * All calls for one thread come from the same thread of ours: a tracer is a thread (ptrace(2)). */
#ifndef FGPROF_TARGET_STOP_H
#define FGPROF_TARGET_STOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stop {
    pid_t tid;
    pid_t process_id;     /* takes the place of tid where that thread executes a program */
    int pass_signal;      /* one it was about to get when it stopped: given back on release */
    uint64_t running_ns;  /* CLOCK_MONOTONIC: when it was last known not to have stopped yet */
    uint64_t released_ns; /* CLOCK_MONOTONIC */
    bool runs_first;      /* we have real-time priority until it is released */
    bool is_group_stop;   /* it is stopped by a signal too, and stays so */
    bool exited;          /* its end was seen while waiting for it */
    int exit_status;      /* as of waitpid, where it has exited */
};

/* Attaches to thread `tid` of process `process_id` and asks it to stop. Returns 0, -ESRCH where it
 * is gone or on its way out, -EPERM where it may not be traced or another process traces it. */
int stop_request(pid_t process_id, pid_t tid, struct stop *ret_stop);

/* Looks whether it has stopped, waiting for `wait_ns` at the most. Returns 0 where it has, -EAGAIN
 * where it has not yet (ask again later), -ESRCH where it has exited. */
int stop_await(struct stop *stop, uint64_t wait_ns);

/* Lets a stopped thread go on, with the signal that it was about to get. */
void stop_release(struct stop *stop);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t monotonic_ns(void);

#endif
