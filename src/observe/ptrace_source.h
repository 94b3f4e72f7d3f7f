/* The source that stops threads with ptrace, each for as long as its registers and stack are
 * copied.
 *
 * Stops are requested together and collected as they come. A thread that has stopped is copied and
 * let go immediately, whatever the others do, and before anything else is done with any of them. A
 * thread that waits for a CPU, and so can't stop yet, delays no other. All calls must come from one
 * thread, since a tracer is a thread (ptrace(2)). */
#ifndef FGPROF_OBSERVE_PTRACE_SOURCE_H
#define FGPROF_OBSERVE_PTRACE_SOURCE_H

#include "observe/subject.h"
#include "observe/watch.h"

#define STOPS_MAX 64 /* under way at a time: a stopped thread waits for those copied before it */

struct ptrace_source;

/* `watches` must outlive it. Returns 0 or a negative errno. */
int ptrace_source_new(struct watches *watches, struct ptrace_source **ret_source);
/* Accepts NULL. */
void ptrace_source_free(struct ptrace_source *source);

/* Begins to stop a thread, to observe it into `observation`, whose snapshot has room for the stacks
 * wanted. On OUTCOME_PENDING it owns the snapshot until it is collected. */
enum outcome ptrace_source_observe(struct ptrace_source *source, const struct subject *subject,
                                   const struct observation *observation);

/* Takes an observation that was pending and no longer is. Returns false if there is none. */
bool ptrace_source_collect(struct ptrace_source *source, struct observation *ret_observation,
                           enum outcome *ret_outcome);

/* Whether another thread may be observed now, and how many are under way. */
bool ptrace_source_has_room(const struct ptrace_source *source);
size_t ptrace_source_pending(const struct ptrace_source *source);

/* Asks all threads that were observed since the last call to stop. From then on until none is
 * pending, the calling thread runs before others, if permitted. */
void ptrace_source_interrupt(struct ptrace_source *source);

/* Copies and lets go every thread that has stopped. As far as is known, none of them stopped before
 * `heard_ns`. Returns how many are ready to be collected. */
size_t ptrace_source_let_go(struct ptrace_source *source, uint64_t heard_ns);

/* Whether anything of this process is under way, or its dying first thread must still be waited
 * for. */
bool ptrace_source_awaits(const struct ptrace_source *source, pid_t process_id);

/* The first thread of a process may end while it is asked to stop, and others go on. It is then a
 * zombie that never stops; this takes it for gone. */
void ptrace_source_drop_dead_leader(struct ptrace_source *source, pid_t process_id, int proc_fd);

/* Returns the ends of processes' first threads that were seen while stopping them, each once: if
 * one is a child of ours, nobody else can wait for it. Returns false if there is none. `ret_status`
 * is as from waitpid. */
bool ptrace_source_next_exit(struct ptrace_source *source, pid_t *ret_process_id, int *ret_status);

/* At the end: when the calling thread exits, the kernel lets go all threads that have not stopped
 * yet (exit_ptrace in the kernel's ptrace.c). */
void ptrace_source_give_up(struct ptrace_source *source);

#endif
