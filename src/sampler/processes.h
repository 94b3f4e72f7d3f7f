/* The sampled processes: opened, started, followed, and let go. */
#ifndef FGPROF_SAMPLER_PROCESSES_H
#define FGPROF_SAMPLER_PROCESSES_H

#include "sampler/state.h"

/* Adds process `pid`. Returns 0, an error of process_open, or -EEXIST if it was added before. */
int processes_add(struct sampler *sampler, pid_t pid);

/* How many threads the processes have now. */
size_t processes_count_threads(const struct sampler *sampler);

/* Takes in the threads that exist when the recording starts, and descendants if those are followed:
 * their time counts from then. Returns 0 or -ENOMEM. */
int processes_start(struct sampler *sampler);

/* Takes in descendants that were born since the last call. Returns 0 or -ENOMEM. */
int processes_find(struct sampler *sampler);

/* Opens the program that the process now runs if that has changed; process->program is NULL if it
 * can't be looked at now. Returns 0 or -ENOMEM. */
int processes_update_program(struct sampler *sampler, struct sampled_process *process);

/* Lets go of followed processes that have exited. */
void processes_drop_exited(struct sampler *sampler);

/* Whether the command has exited, or all processes if there is none: sampling ends then, even if
 * the command's children live on. */
bool processes_all_exited(const struct sampler *sampler);

void processes_free(struct sampler *sampler);

/* Before sampling: whether objects of this kind can be reported for one of the processes. Returns
 * 0, -ENOMEM, or why not: struct object_counts' `refusal`, negative, or -ENOENT. */
int processes_try_objects(struct sampler *sampler, enum object_kind kind);

#endif
