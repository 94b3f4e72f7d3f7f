/* Where threads were when they left a CPU (perf_event_open(2), context switches).
 *
 * A thread's event records its registers each time the thread leaves a CPU, and notes when it comes
 * back, in a ring in which new records overwrite old ones. Each of these switches takes several
 * microseconds longer (bench/results/record.md), so only some threads have one, in one of two ways:
 *
 * An event that is always on is for threads that do not switch often, and that wait for CPUs, which
 * /proc does not show, or sleep where a register is needed. The newest record says where the thread
 * is, and as long as there is no newer one, the thread is still there.
 *
 * An event with a window is on from shortly before a tick until the look at the thread, and records
 * the top of its stack, too. It is for threads that switch often: it shows the sleep in which they
 * were at the tick, even if they have moved since. A sleep that began before the window is unknown.
 * So is whether the thread was woken before the tick and waited for a CPU: that counts as sleep. */
#ifndef FGPROF_OBSERVE_SWITCHES_H
#define FGPROF_OBSERVE_SWITCHES_H

#include "observe/subject.h"
#include "observe/watch.h"

enum switches_kind {
    SWITCHES_ALWAYS,    /* always on */
    SWITCHES_IN_WINDOW, /* with a window */
    SWITCHES_KINDS,
};

struct switches;

/* Returns 0 or -ENOMEM. */
int switches_new(struct switches **ret_switches);
/* All functions accept NULL: no thread has an event then. */
void switches_free(struct switches *switches);

/* Gives the thread an event. Returns 0, or a negative errno if that is not permitted or too many
 * threads have events of that kind. For a while after a refusal, other threads get the same answer
 * without another try. */
int switches_add(struct switches *switches, enum switches_kind kind, uint32_t thread, pid_t tid);
bool switches_have(const struct switches *switches, enum switches_kind kind, uint32_t thread);
/* The thread is gone, or needs no event any more. */
void switches_drop(struct switches *switches, enum switches_kind kind, uint32_t thread);

/* For events that are always on: observes a thread that was just found not asleep, into
 * `observation`, whose snapshot has room for the wanted stacks. Returns OUTCOME_OBSERVED for a
 * thread that has waited for a CPU since before `subject->look`, OUTCOME_RUNNING for a thread that
 * is on a CPU or was at that time, and OUTCOME_REFUSED for a thread that has no event or no record
 * yet. */
enum outcome switches_observe(const struct switches *switches, const struct subject *subject,
                              struct observation *observation);
/* Adds registers of a sleeping thread to those that /proc shows, `registers`. Adds none if it has
 * no event, or went to sleep before it had one. */
void switches_complete(const struct switches *switches, uint32_t thread,
                       struct registers *registers);

/* Opens all windows if `begin_ns` has come. Returns UINT64_MAX, or `begin_ns` if that is still to
 * come. */
uint64_t switches_open_windows(struct switches *switches, uint64_t begin_ns);
void switches_close_windows(struct switches *switches);

/* Corrects a look through /proc, which has had this outcome and filled in `observation`, and closes
 * the thread's window. If the thread was asleep at the subject's tick, in a sleep that began in the
 * window, and has moved before the look: observes it in that sleep, reads now what was not recorded
 * of its stack, and returns OUTCOME_OBSERVED. If the look found a sleep that began after the tick:
 * returns OUTCOME_ASLEEP if the thread was awake at the tick, and OUTCOME_REFUSED if it was asleep
 * in an unknown place and the look came soon. Otherwise returns the look's own outcome. */
enum outcome switches_observe_at_tick(struct switches *switches, const struct subject *subject,
                                      struct watch *watch, enum outcome outcome,
                                      struct observation *observation);

#endif
