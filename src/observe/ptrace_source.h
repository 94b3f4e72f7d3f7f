/* The source that stops threads with ptrace, each while its registers and stack are copied.
 *
 * Stops are requested together and collected as they come. A thread that has stopped is copied and
 * released immediately, whatever the others do, and before anything else is done with any of them.
 * A thread that waits for a CPU, and so can't stop yet, does not delay others. All calls must come
 * from one thread, because a tracer is a thread (ptrace(2)). */
#ifndef FGPROF_OBSERVE_PTRACE_SOURCE_H
#define FGPROF_OBSERVE_PTRACE_SOURCE_H

#include "observe/subject.h"
#include "observe/watch.h"

#define STOPS_MAX 64 /* pending at a time: a stopped thread waits for those copied before it */

struct ptrace_source;

/* `watches` must outlive it. Returns 0 or a negative errno. */
int ptrace_source_new(struct watches *watches, struct ptrace_source **ret_source);
/* Accepts NULL. */
void ptrace_source_free(struct ptrace_source *source);

/* Begins to stop a thread, to observe it into `observation`, whose snapshot has room for the wanted
 * stacks. On OUTCOME_PENDING the source owns the snapshot until the observation is collected. */
enum outcome ptrace_source_observe(struct ptrace_source *source, const struct subject *subject,
                                   const struct observation *observation);

/* Takes an observation that is no longer pending. Returns false if there is none. */
bool ptrace_source_collect(struct ptrace_source *source, struct observation *ret_observation,
                           enum outcome *ret_outcome);

/* Whether another thread may be observed now, and how many are pending. */
bool ptrace_source_has_room(const struct ptrace_source *source);
size_t ptrace_source_pending(const struct ptrace_source *source);

/* Interrupts all threads that were passed to ptrace_source_observe since the last call. From then
 * until none is pending, the calling thread runs before others, if permitted. */
void ptrace_source_interrupt(struct ptrace_source *source);

/* Copies and releases every thread that has stopped. As far as is known, none of them stopped
 * before `heard_ns`. Returns how many are ready to be collected. */
size_t ptrace_source_let_go(struct ptrace_source *source, uint64_t heard_ns);

/* Whether any stop in this process is pending, or its dying first thread must still be waited
 * for. */
bool ptrace_source_awaits(const struct ptrace_source *source, pid_t process_id);

/* The first thread of a process may exit after it was asked to stop, while others continue. It is
 * then a zombie that never stops; this treats it as gone. */
void ptrace_source_drop_dead_leader(struct ptrace_source *source, pid_t process_id, int proc_fd);

/* Takes the end of a process's first thread that was seen while stopping it, each once: if the
 * process is a child of ours, nothing else can wait for it now. Returns false if there is none.
 * `ret_status` is as from waitpid(2). */
bool ptrace_source_next_exit(struct ptrace_source *source, pid_t *ret_process_id, int *ret_status);

/* Called at the end: when the calling thread exits, the kernel releases all threads that have not
 * stopped yet (exit_ptrace in the kernel's ptrace.c). */
void ptrace_source_give_up(struct ptrace_source *source);

#endif
