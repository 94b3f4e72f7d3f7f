/* In which sleep threads were at a tick, although they have moved since (perf_event_open(2),
 * context switches).
 *
 * A thread's event records its registers and the top of its stack each time the thread leaves a
 * CPU, and notes when it comes back. That makes each switch several microseconds longer
 * (bench/results/record.md), so the event is only enabled in a window from shortly before a tick
 * until the look at the thread. A sleep that began before the window is not known. Nor is whether
 * the thread was woken before the tick, and waited for a CPU: that counts as sleep. */
#ifndef FGPROF_OBSERVE_SWITCH_WINDOWS_H
#define FGPROF_OBSERVE_SWITCH_WINDOWS_H

#include "observe/subject.h"
#include "observe/watch.h"

struct switch_windows;

/* Returns 0 or -ENOMEM. */
int switch_windows_new(struct switch_windows **ret_windows);
/* All functions accept NULL: no thread has an event then. */
void switch_windows_free(struct switch_windows *windows);

/* Gives the thread an event. Returns 0, or a negative errno if that is not permitted or too many
 * threads have events. */
int switch_windows_add(struct switch_windows *windows, uint32_t thread, pid_t tid);
/* The thread is gone, or needs no event any more. */
void switch_windows_drop(struct switch_windows *windows, uint32_t thread);

/* Opens a window if `begin_ns` has come. Returns UINT64_MAX, or `begin_ns` if that is still to
 * come. */
uint64_t switch_windows_open(struct switch_windows *windows, uint64_t begin_ns);
void switch_windows_close(struct switch_windows *windows);

/* Corrects a look through /proc, which has had this outcome and filled in `observation`, and closes
 * the thread's window. If the thread was asleep at the subject's tick, in a sleep that began in the
 * window, and has moved before the look: observes it in that sleep, reads now what was not recorded
 * of its stack, and returns OUTCOME_OBSERVED. If the look found a sleep that began after the tick:
 * returns OUTCOME_ASLEEP if the thread was awake at the tick, and OUTCOME_REFUSED if it was asleep
 * in an unknown place and the look came soon. Otherwise returns the look's own outcome. */
enum outcome switch_windows_observe(struct switch_windows *windows, const struct subject *subject,
                                    struct watch *watch, enum outcome outcome,
                                    struct observation *observation);

#endif
