/* Looks at threads: those that sleep are observed as they are, those that run are to be stopped. */
#ifndef FGPROF_SAMPLER_LOOK_H
#define FGPROF_SAMPLER_LOOK_H

#include "sampler/state.h"

/* Looks at a thread at this tick, and stops nothing. Returns 0; -ENOMEM; or -EAGAIN if the worker
 * is behind, and the thread has to be looked at later. */
int look_at(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
            uint64_t tick);

/* What the thread is observed by, and what is wanted of it. */
struct subject look_subject(const struct sampler *sampler, const struct sampled_process *process,
                            const struct thread *thread);

/* The thread is to be stopped when its turn comes. */
void look_ask_for_stop(struct sampled_process *process, struct thread *thread);

/* The thread has exited; `until_ns`: its time counts up to there. `is_certain`: it was there until
 * then. */
int look_note_gone(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                   uint64_t until_ns, bool is_certain);

/* A thread that had exited is there again: see execve(2) on what becomes of a leader. */
void look_note_alive(struct thread *thread);

#endif
