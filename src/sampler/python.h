/* Which threads of a process run Python, and where the interpreter keeps their frames. */
#ifndef FGPROF_SAMPLER_PYTHON_H
#define FGPROF_SAMPLER_PYTHON_H

#include "observe/bpf/departure.h"
#include "observe/snapshot.h"
#include "sampler/state.h"

/* The worker has found an interpreter: threads that sleep on are looked at again. */
void python_begin(struct sampled_process *process, const struct python_place *place);

/* Lists its threads again, if it has any and the last listing is some time ago. Returns 0 or
 * -ENOMEM. */
int python_update(struct sampled_process *process);

/* How to read a thread's frames; layout NULL: it is not known to run Python. */
struct python_thread python_of(const struct sampled_process *process, const struct thread *thread);

/* Keeps what the record's message has of a thread's Python frames, when it was sampled, for its
 * sample. Returns 0 or -ENOMEM. */
int python_keep_copy(struct sampled_process *process, const struct past_departure *past);

/* Fills in the Python frames of a sample that was taken at that time. Returns how much of them
 * there is: enum switch_frames_state. */
uint32_t python_take_copy(struct sampled_process *process, const struct thread *thread,
                          uint64_t at_ns, struct snapshot *snapshot);

/* Tells the worker of a tick, at which it may read the program's tasks. Returns 0 or -ENOMEM. */
int python_report_tasks(struct sampler *sampler, struct sampled_process *process, bool is_last);

/* The program has ended. */
void python_forget(struct sampled_python *python);

#endif
