/* Stops one thread with ptrace, for as long as it takes to copy it.
 *
 * SEIZE does not pause it, INTERRUPT does, DETACH lets it go; between samples it is not traced.
 * Several threads of a process may be held at a time, with a reaper (observe/reaper.h). All calls
 * for one thread must come from the same thread of ours: a tracer is a thread (ptrace(2)). */
#ifndef FGPROF_OBSERVE_STOP_H
#define FGPROF_OBSERVE_STOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stop {
    pid_t tid;
    pid_t process_id;       /* replaces tid if that thread executes a program */
    int pass_signal;        /* a signal that it was about to get when it stopped: passed on at
                               release */
    uint64_t polled_ns;     /* CLOCK_MONOTONIC: when it was last found not to have stopped yet */
    uint64_t running_ns;    /* CLOCK_MONOTONIC: when it was last known not to have stopped yet */
    uint64_t released_ns;   /* CLOCK_MONOTONIC */
    bool may_become_leader; /* set by the caller: no other stop has the process's id */
    bool is_group_stop;     /* a signal stopped it too, and it stays stopped */
    bool is_dying;          /* it was killed while it was stopped, and is ours until it is dead */
    bool exited;            /* its end was seen while waiting for it */
    int exit_status;        /* as from waitpid, if it has exited */
};

/* Attaches to thread `tid` of process `process_id`, which runs on. Returns 0, -ESRCH if it is gone,
 * or -EPERM if it is exiting, may not be traced, or is traced by another process. */
int stop_request(pid_t process_id, pid_t tid, struct stop *ret_stop);

/* Asks it to stop. */
void stop_interrupt(struct stop *stop);

/* Checks whether it has stopped, without waiting. Returns 0 if it has, -EAGAIN if it has not yet,
 * -ESRCH if it has exited. */
int stop_poll(struct stop *stop);

/* Lets a stopped thread go on, with the signal that it was about to get. Sets is_dying if that
 * can't be done. */
void stop_release(struct stop *stop);

/* Takes in the end of a dying thread, if it has come: sets exited and exit_status. Returns false if
 * it is still to come. */
bool stop_end(struct stop *stop);

#endif
