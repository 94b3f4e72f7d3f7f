/* Which threads of a process run Python, and where the interpreter keeps their frames. */
#ifndef FGPROF_SAMPLER_PYTHON_H
#define FGPROF_SAMPLER_PYTHON_H

#include "observe/bpf/departure.h"
#include "observe/snapshot.h"
#include "sampler/state.h"

/* The worker has found an interpreter: threads that are still asleep are looked at again. */
void python_begin(struct sampled_process *process, const struct python_place *place);

/* Lists the interpreter's threads again, if there is one and the last listing was some time ago.
 * Returns 0 or -ENOMEM. */
int python_update(struct sampled_process *process);

/* How to read a thread's frames; layout NULL: it is not known to run Python. */
struct python_thread python_of(const struct sampled_process *process, const struct thread *thread);

/* Keeps the Python frames in the record's message about a sampled thread, until its sample is read.
 * Returns 0 or -ENOMEM. */
int python_keep_copy(struct sampled_process *process, const struct past_departure *past);

/* Fills in the Python frames of a sample that was taken at that time. Returns how complete they
 * are: enum switch_frames_state. */
uint32_t python_take_copy(struct sampled_process *process, const struct thread *thread,
                          uint64_t at_ns, struct snapshot *snapshot);

/* Reports a tick to the worker, which may then read the program's tasks. Returns 0 or -ENOMEM. */
int python_report_tasks(struct sampler *sampler, struct sampled_process *process, bool is_last);

/* The program has ended. */
void python_forget(struct sampled_python *python);

#endif
