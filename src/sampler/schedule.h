/* When a thread is looked at again. */
#ifndef FGPROF_SAMPLER_SCHEDULE_H
#define FGPROF_SAMPLER_SCHEDULE_H

#include "sampler/threads.h"

/* A look begins at this tick. Returns the tick of the previous look; 0: there was none. */
uint64_t schedule_look(struct thread_schedule *schedule, uint64_t tick);

/* A look has proved that the thread slept on. That proves all ticks since the last look, so the
 * next look may come after another 1/32 of the sleep so far: if the thread moves after all, the
 * unknown time is a small part of its sleep. Very many threads take turns; then the next look may
 * come later, after at most half of the sleep so far. A thread is looked at earlier if a thread of
 * its process has run unseen (sampler/activity_check.h). */
void schedule_unmoved(struct thread *thread, const struct reading *proven, size_t thread_count);

/* The thread has moved since it was last observed, at `last_look_tick`, and its process was at rest
 * until `rest`: if the thread slept when last observed, it slept until then. Returns the number of
 * later ticks whose state is only assumed. */
uint64_t schedule_moved(struct thread *thread, uint64_t last_look_tick, const struct moment *rest);

/* The thread has slept on until `until`, at `asleep_ticks`. The look then represents the ticks
 * after them at which the thread waits for a CPU. */
void schedule_slept_until(struct thread_schedule *schedule, const struct reading *until,
                          uint64_t asleep_ticks, uint64_t runnable_ticks);

/* The thread is now known to have been asleep at this tick, as if a look had found it. */
void schedule_was_asleep(struct thread_schedule *schedule, uint64_t tick);

/* The thread was off its CPU at this many ticks up to this look, and it is not known where. */
void schedule_unseen(struct thread_schedule *schedule, uint64_t ticks);

/* All ticks so far were reported to the worker. */
void schedule_reported(struct thread_schedule *schedule);

/* The thread is not looked at before `next_tick`, and these ticks do not count as missed. */
void schedule_leave_out(struct thread_schedule *schedule, uint64_t tick, uint64_t next_tick);

#endif
