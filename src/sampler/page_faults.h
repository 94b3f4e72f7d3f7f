/* Tells the worker which pages of the processes became resident, by the threads that touched them
 * first (OBJECT_PAGE of objects/source.h), and has it check now and then which are still
 * there. */
#ifndef FGPROF_SAMPLER_PAGE_FAULTS_H
#define FGPROF_SAMPLER_PAGE_FAULTS_H

#include "sampler/state.h"

/* Begins to see faults, if the options want them and it is permitted. Returns 0 or -ENOMEM. */
int page_faults_begin(struct sampler *sampler);

/* The process's faults are seen from now on. Returns 0 or -ENOMEM. */
int page_faults_follow(struct sampler *sampler, struct sampled_process *process);

/* Sends what has come since, and has pages checked that were not checked for a while. `is_last`: a
 * copy is to be made, or sampling ends: all pages are checked. Returns 0 or -ENOMEM. */
int page_faults_tell(struct sampler *sampler, bool is_last);

/* The process's program ends: sends the rest of what is known of it. Returns 0 or -ENOMEM. */
int page_faults_end_program(struct sampler *sampler, struct sampled_process *process);

/* Adds what is known of the counts of OBJECT_PAGE. */
void page_faults_count(const struct sampler *sampler, struct object_counts *counts);

void page_faults_forget_process(struct sampler *sampler, struct sampled_process *process);
void page_faults_end(struct sampler *sampler);

#endif
