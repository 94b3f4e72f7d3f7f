/* Keeps an exec in a target from waiting for us.
 *
 * A thread that executes a program waits until all other threads of its process are gone. A thread
 * that we trace is gone only once we have collected it, which the sampling thread does. But the
 * sampling thread may itself be waiting for the exec: PTRACE_SEIZE of another thread of that
 * process takes a lock that exec holds (cred_guard_mutex; ptrace_attach in the kernel's ptrace.c,
 * de_thread in its fs/exec.c). So a separate thread collects held threads that have died. Any
 * thread of a process may collect the tracees of another one (wait(2), __WNOTHREAD). */
#ifndef FGPROF_OBSERVE_REAPER_H
#define FGPROF_OBSERVE_REAPER_H

#include <sys/types.h>

struct reaper;

/* Starts a reaper. Returns 0 or a negative errno. */
int reaper_new(struct reaper **ret_reaper);

/* Ends it. Accepts NULL. */
void reaper_free(struct reaper *reaper);

/* Thread `tid` is traced from now on. Do not call it for the first thread of a process: an exec
 * does not wait for its collection, and its end must be collected by its parent, which may be us.
 * Returns 0 or -ENOMEM; on -ENOMEM nothing has changed. */
int reaper_hold(struct reaper *reaper, pid_t tid);

/* Another thread is about to be traced: from now on, as long as any threads are held, their ends
 * are collected. */
void reaper_watch(struct reaper *reaper);

/* No thread is traced any more: the thread that traced them has ended, or is about to. */
void reaper_forget_all(struct reaper *reaper);

/* Thread `tid` is no longer traced. */
void reaper_drop(struct reaper *reaper, pid_t tid);

/* Thread `tid` can't be released, because it is dying: it is collected once it is dead. */
void reaper_abandon(struct reaper *reaper, pid_t tid);

#endif
