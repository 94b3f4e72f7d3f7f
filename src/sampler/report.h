/* Reports a thread's life to the worker: completes observations and sends them.
 *
 * A thread's time is reported without gaps: from life.begin to its end, each observation continues
 * where the previous one ended. A thread that sleeps for long is reported now and then. All
 * functions return 0 or -ENOMEM. */
#ifndef FGPROF_SAMPLER_REPORT_H
#define FGPROF_SAMPLER_REPORT_H

#include "sampler/state.h"

/* Sends an observation with a copy: the worker owns its snapshot from now on. */
int report_observed(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                    struct observation *observation);

/* The same for a sample by the kernel. */
int report_sampled(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                   struct observation *observation);

/* The thread still sleeps: reports what schedule.proven says. */
int report_unmoved(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                   struct observation *observation);

/* The thread has been woken where it slept, and waits for a CPU: nothing was copied. */
int report_woken(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                 struct observation *observation);

/* The thread exists but could not be observed. Does nothing if it was reported to the worker
 * recently. */
int report_assumed(struct sampler *sampler, struct sampled_process *process, struct thread *thread);

/* The thread's counted time ends with `until`; `is_certain`: it existed until then. Does nothing if
 * none of its time is counted. */
int report_gone(struct sampler *sampler, struct sampled_process *process, struct thread *thread,
                const struct reading *until, bool is_certain);

/* The process no longer runs its program, and has no program from now on. */
int report_program_ended(struct sampler *sampler, struct sampled_process *process);

/* Sends a notice to the collector, if there is one, and if it knows the process. */
int report_to_collector(struct sampler *sampler, struct notice notice);
int report_process_to_collector(struct sampler *sampler, struct sampled_process *process);

/* The process is sampled from now on: gives it its number. */
int report_process(struct sampler *sampler, struct sampled_process *process);

/* The thread's time counts from `begin` on. */
void report_begin(struct thread *thread, const struct reading *begin);

/* What the kernel's account of the thread says now. */
struct reading thread_read_account(struct sampler *sampler, const struct sampled_process *process,
                                   const struct thread *thread);

#endif
