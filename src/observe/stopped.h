/* The source that stops threads by ptrace, each for as long as its registers and stack are copied.
 *
 * Stops are asked for together and collected as they come: a thread that has stopped is copied and
 * let go at once, whatever the others do, and before anything else is done with any of them. A
 * thread that waits for a CPU, and so can't stop yet, holds up no other. All calls come from one
 * thread, since a tracer is a thread (ptrace(2)). */
#ifndef FGPROF_OBSERVE_STOPPED_H
#define FGPROF_OBSERVE_STOPPED_H

#include "observe/source.h"
#include "observe/watch.h"

#define STOPS_MAX 64 /* under way at a time: a stopped thread waits for those copied before it */

/* `watches` must outlive it. Returns 0 or a negative errno. */
int stopped_source_new(struct watches *watches, struct source **ret_source);

/* Whether another thread may be observed now, and how many are under way. */
bool stopped_has_room(const struct source *source);
size_t stopped_pending(const struct source *source);

/* Asks all threads that were observed since the last call to stop. From then on until none pends
 * the calling thread runs before others, if it may: see proc/priority.h. */
void stopped_interrupt(struct source *source);

/* Copies and lets go every thread that has stopped; none of them before `heard_ns`, as far as is
 * known. Returns how many are there to be collected. */
size_t stopped_let_go(struct source *source, uint64_t heard_ns);

/* Whether anything of this process is under way, or its dying first thread is still to be waited
 * for. */
bool stopped_awaits(const struct source *source, pid_t process_id);

/* The first thread of a process may end while it is asked to stop, and others go on: it is a zombie
 * then that never stops. Takes it for gone. */
void stopped_drop_dead_leader(struct source *source, pid_t process_id, int proc_fd);

/* The end of a process's first thread that was seen while stopping it, each once: for a child of
 * ours nobody else can wait for it. Returns false if there is none. `ret_status` as of waitpid. */
bool stopped_next_exit(struct source *source, pid_t *ret_process_id, int *ret_status);

/* At the end: the kernel lets all go that have not stopped yet, when the calling thread exits
 * (exit_ptrace in the kernel's ptrace.c). */
void stopped_give_up(struct source *source);

#endif
