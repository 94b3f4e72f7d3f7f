/* Stopping one thread by ptrace, for as long as it takes to copy it.
 *
 * SEIZE does not pause it, INTERRUPT does, DETACH lets it go; between samples it is not traced.
 * Several threads of a process may be held at a time, with a reaper (observe/reaper.h). All calls
 * for one thread come from the same thread of ours: a tracer is a thread (ptrace(2)). */
#ifndef FGPROF_OBSERVE_STOP_H
#define FGPROF_OBSERVE_STOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stop {
    pid_t tid;
    pid_t process_id;       /* takes the place of tid where that thread executes a program */
    int pass_signal;        /* one it was about to get when it stopped: given back on release */
    uint64_t running_ns;    /* CLOCK_MONOTONIC: when it was last known not to have stopped yet */
    uint64_t released_ns;   /* CLOCK_MONOTONIC */
    bool may_become_leader; /* set by the caller: its process's id stands for no other stop */
    bool is_group_stop;     /* it is stopped by a signal too, and stays so */
    bool is_dying;          /* it was killed while it was stopped, and is ours until it is dead */
    bool exited;            /* its end was seen while waiting for it */
    int exit_status;        /* as of waitpid, where it has exited */
};

/* Attaches to thread `tid` of process `process_id`, which runs on. Returns 0, -ESRCH where it is
 * gone or on its way out, -EPERM where it may not be traced or another process traces it. */
int stop_request(pid_t process_id, pid_t tid, struct stop *ret_stop);

/* Asks it to stop. */
void stop_interrupt(struct stop *stop);

/* Looks whether it has stopped. Returns 0 where it has, -EAGAIN where it has not yet, -ESRCH where
 * it has exited. Does not wait. */
int stop_poll(struct stop *stop);

/* Lets a stopped thread go on, with the signal that it was about to get. Sets is_dying where that
 * can't be done. */
void stop_release(struct stop *stop);

/* Takes in the end of a dying thread, if that has come: sets exited and exit_status. Returns false
 * where it is still to come. */
bool stop_end(struct stop *stop);

#endif
