/* Where threads were when they last left a CPU (perf_event_open(2), context switches).
 *
 * A thread's event records its registers each time the thread leaves a CPU, and notes when it comes
 * back, in a ring in which new records overwrite old ones. So a thread that waits for a CPU can be
 * observed, which is impossible through /proc: its newest record says where it is, and proves that
 * it is still there as long as there is no newer record. The record also holds the registers of a
 * sleeping thread that /proc does not show.
 *
 * Each switch of the thread takes several microseconds longer (bench/results/record.md), so this is
 * for threads that wait for CPUs or sleep where a register is needed, and do not switch often. */
#ifndef FGPROF_OBSERVE_SWITCHES_H
#define FGPROF_OBSERVE_SWITCHES_H

#include "observe/subject.h"

struct switches;

/* Returns 0 or -ENOMEM. */
int switches_new(struct switches **ret_switches);
/* Accepts NULL. */
void switches_free(struct switches *switches);

/* Observes a thread that was just found not asleep, into `observation`, whose snapshot has room for
 * the wanted stacks. Returns OUTCOME_OBSERVED for a thread that has waited for a CPU since before
 * `subject->look`, OUTCOME_RUNNING for a thread that is on a CPU or was at that time, and
 * OUTCOME_REFUSED for a thread that has no event or no record yet. */
enum outcome switches_observe(const struct switches *switches, const struct subject *subject,
                              struct observation *observation);

/* Gives the thread an event. Returns 0, or a negative errno if that is not permitted or too many
 * threads have events. */
int switches_arm(struct switches *switches, uint32_t thread, pid_t tid);
/* The next two accept NULL: no thread has an event then. */
bool switches_is_armed(const struct switches *switches, uint32_t thread);
/* Adds registers of a sleeping thread to those that /proc shows, `registers`. Adds none if it has
 * no event, or went to sleep before it had one. */
void switches_complete(const struct switches *switches, uint32_t thread,
                       struct registers *registers);
/* The thread is gone, or needs no event any more. */
void switches_disarm(struct switches *switches, uint32_t thread);

#endif
