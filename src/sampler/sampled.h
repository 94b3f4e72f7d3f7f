/* The processes that are sampled: opened, started, followed, and let go. */
#ifndef FGPROF_SAMPLER_SAMPLED_H
#define FGPROF_SAMPLER_SAMPLED_H

#include "sampler/state.h"

/* Adds process `pid`. Returns 0, what process_open does, or -EEXIST if it was added before. */
int sampled_add(struct sampler *sampler, pid_t pid);

/* Takes in the threads that are there when the recording starts, and descendants if they are to be
 * followed: their time counts from then. Returns 0 or -ENOMEM. */
int sampled_start(struct sampler *sampler);

/* Takes in descendants that were born since the last time. Returns 0 or -ENOMEM. */
int sampled_find(struct sampler *sampler);

/* Keeps the open program in step with what the process runs; process->program is NULL if it can't
 * be looked at now. Returns 0 or -ENOMEM. */
int sampled_update_program(struct sampler *sampler, struct sampled_process *process);

/* Lets go of followed ones that have exited. */
void sampled_drop_exited(struct sampler *sampler);

/* A command's end ends the recording, even if its children live on. */
bool sampled_all_exited(const struct sampler *sampler);

void sampled_free(struct sampler *sampler);

#endif
