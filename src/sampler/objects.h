/* Tells the worker of the processes' objects (objects/source.h). */
#ifndef FGPROF_SAMPLER_OBJECTS_H
#define FGPROF_SAMPLER_OBJECTS_H

#include "sampler/state.h"

/* What the agent is to tell: not of threads, if the kernel does. */
struct object_options objects_of_agent(const struct sampler *sampler);

/* Opens what tells of the objects of the process's program, as far as it is not open and is there
 * by now. Returns 0 or -ENOMEM. */
int objects_open(struct sampler *sampler, struct sampled_process *process);

/* Opens what tells of the objects of the process's program, as far as it is not open and is there
 * by now, and sends what it has. Sets sampler->has_fast_objects if that is to be done again soon.
 * `is_last`: see struct object_source. Returns 0 or -ENOMEM. */
int objects_tell(struct sampler *sampler, struct sampled_process *process, bool is_last);

/* A copy is to be made: what can be learnt at any time is told next. */
void objects_refresh(struct sampled_process *process);

/* Whether there is more to tell than there were snapshots for. */
bool objects_are_left(const struct sampled_process *process);

/* The process's program ends, or sampling does: sends the rest, and closes what told of its
 * objects. Returns 0 or -ENOMEM. */
int objects_end(struct sampler *sampler, struct sampled_process *process);

/* All that the process's programs so far made is gone: it has executed another one. Returns 0 or
 * -ENOMEM. */
int objects_forget_program(struct sampler *sampler, struct sampled_process *process);

/* The process has ended. What it never gave back is shown as in use, unless the recording is one
 * without an end, of what there is now. Returns 0 or -ENOMEM. */
int objects_leave_process(struct sampler *sampler, struct sampled_process *process);

/* Sets the counts of objects in sampler->counts to what is known now. */
void objects_count(struct sampler *sampler);

#endif
