/* Where threads were off their CPU at a tick, by the kernel's record of switches, if there is one.
 *
 * The record reports threads that left their CPU before a tick and have returned since; these are
 * taken first. Other threads are observed as usual, but each observation describes the moment of
 * the tick. */
#ifndef FGPROF_SAMPLER_OFF_CPU_SAMPLES_H
#define FGPROF_SAMPLER_OFF_CPU_SAMPLES_H

#include "sampler/state.h"

/* Opens the record in a thread of its own if it is wanted. If it is required, waits until it is
 * open. Returns 0 or -ENOMEM; if the record is required, also the error that prevents it. */
int off_cpu_samples_begin(struct sampler *sampler);
/* The clock has started: gives the times of ticks to the record. */
void off_cpu_samples_start(struct sampler *sampler);
void off_cpu_samples_end(struct sampler *sampler);

/* Records the process's switches if we may read its threads' registers. That is checked here each
 * time it executes a program, because the kernel does not check it. */
void off_cpu_samples_follow(struct sampler *sampler, const struct sampled_process *process);
void off_cpu_samples_unfollow(struct sampler *sampler, const struct sampled_process *process);

/* Called between ticks: starts to use the record once it is open. Returns 0 or -ENOMEM. */
int off_cpu_samples_continue(struct sampler *sampler);

/* Takes what the record reports. Returns 0 or -ENOMEM. */
int off_cpu_samples_take(struct sampler *sampler);

/* Observes the thread for the tick. *ret_outcome is OUTCOME_REFUSED if the record does not know
 * where it was then, and OUTCOME_PENDING if the record's report has already been taken. Returns 0
 * or -ENOMEM. */
int off_cpu_samples_observe(struct sampler *sampler, struct sampled_process *process,
                            struct thread *thread, uint64_t tick, struct observation *observation,
                            enum outcome *ret_outcome);

/* The ticks since the previous look: those at which the thread still slept where the record has it,
 * and those at which it waited for a CPU there. */
struct off_cpu_ticks {
    uint64_t asleep, runnable;
};
struct off_cpu_ticks off_cpu_ticks_since(const struct ticks *all, uint64_t known_tick,
                                         uint64_t tick, const struct observation *observation);

/* The thread was waiting for a CPU at the last of these ticks: finds which thread had the CPU
 * then. */
void off_cpu_samples_find_cpu_user(struct sampler *sampler, struct observation *observation,
                                   uint64_t last_tick, uint64_t ticks);

/* Sends an observation by the record, with a copy, for these ticks. */
int off_cpu_samples_report(struct sampler *sampler, struct sampled_process *process,
                           struct thread *thread, struct observation *observation,
                           struct off_cpu_ticks ticks);

#endif
