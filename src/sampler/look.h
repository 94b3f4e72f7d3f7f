/* Looks at threads: sleeping threads are observed as they are, running threads are marked to be
 * stopped. */
#ifndef FGPROF_SAMPLER_LOOK_H
#define FGPROF_SAMPLER_LOOK_H

#include "sampler/state.h"

/* Looks at a thread at this tick, without stopping it. Returns 0, -ENOMEM, or -EAGAIN if the worker
 * is behind and the thread must be looked at later. */
int look_at(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
            uint64_t tick);

/* A visit has found the thread waiting for our CPU: requests a stop if that does not cost the
 * thread too much. The visit was due at `visit_ns`. */
void look_at_visit(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                   const struct reading *now, uint64_t visit_ns);

/* Marks the thread to be stopped when its turn comes. */
void look_ask_for_stop(struct sampled_process *process, struct thread *thread);

/* Notes that the thread has exited. Its time counts up to `until_ns`; `is_certain`: it was there
 * until then. */
int look_note_gone(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                   uint64_t until_ns, bool is_certain);

/* A thread that had exited exists again: see execve(2) on what happens to a leader. */
void look_note_alive(struct thread *thread);

#endif
