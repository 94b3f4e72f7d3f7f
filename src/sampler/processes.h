/* The sampled processes: opened, started, followed, and dropped. */
#ifndef FGPROF_SAMPLER_PROCESSES_H
#define FGPROF_SAMPLER_PROCESSES_H

#include "sampler/state.h"

/* Adds process `pid`. Returns 0, an error of process_open, or -EEXIST if it is already added. */
int processes_add(struct sampler *sampler, pid_t pid);

/* How many threads the processes have now. */
size_t processes_count_threads(const struct sampler *sampler);

/* Adds the threads that exist when the recording starts, and descendants if those are followed:
 * their time counts from then. Returns 0 or -ENOMEM. */
int processes_start(struct sampler *sampler);

/* Adds descendants that were born since the last call. Returns 0 or -ENOMEM. */
int processes_find(struct sampler *sampler);

/* If the process runs another program now, opens that; process->program is NULL if it can't be
 * looked at now. Returns 0 or -ENOMEM. */
int processes_update_program(struct sampler *sampler, struct sampled_process *process);

/* Drops followed processes that have exited. */
void processes_drop_exited(struct sampler *sampler);

/* Whether the command has exited, or, without a command, all processes: sampling ends then, even if
 * the command's children live on. */
bool processes_all_exited(const struct sampler *sampler);

void processes_free(struct sampler *sampler);

/* Called before sampling: whether objects of this kind can be reported for one of the processes.
 * Returns 0, -ENOMEM, or why not: `refusal` of struct object_counts, negated, or -ENOENT. */
int processes_try_objects(struct sampler *sampler, enum object_kind kind);

#endif
