/* When a thread is looked at again. */
#ifndef FGPROF_SAMPLER_SCHEDULE_H
#define FGPROF_SAMPLER_SCHEDULE_H

#include "sampler/threads.h"

/* A look begins at this tick. Returns the tick of the look before; 0: there was none. */
uint64_t schedule_look(struct thread_schedule *schedule, uint64_t tick);

/* A look has proved that the thread slept on. That proves all ticks since the last look, so the
 * next one may be after 1/32 of its sleep: if it moves after all, the unknown time is a small part
 * of that. Very many threads take turns: then it may be after as long as it has slept, at most. A
 * thread is looked at earlier if a thread of its process has run unseen (sampler/activity_check.h).
 */
void schedule_unmoved(struct thread *thread, const struct reading *proven, size_t thread_count);

/* Called if the thread has moved since it was last observed, at `last_look_tick`, while its process
 * was at rest until `rest`: if it slept when last observed, it slept until then. Returns the number
 * of later ticks whose state is only assumed. */
uint64_t schedule_moved(struct thread *thread, uint64_t last_look_tick, const struct moment *rest);

/* It has slept on until `until`, at so many ticks; then the look stands for those, after them, at
 * which it waits for a CPU. */
void schedule_slept_until(struct thread_schedule *schedule, const struct reading *until,
                          uint64_t asleep_ticks, uint64_t runnable_ticks);

/* A look was made at this tick, after the fact, and found it asleep. */
void schedule_was_asleep(struct thread_schedule *schedule, uint64_t tick);

/* It was off its CPU at so many ticks up to this look, and it is not known where. */
void schedule_unseen(struct thread_schedule *schedule, uint64_t ticks);

/* All ticks so far were reported to the worker. */
void schedule_reported(struct thread_schedule *schedule);

/* It is not looked at before that tick, nor missed. */
void schedule_leave_out(struct thread_schedule *schedule, uint64_t tick, uint64_t next_tick);

#endif
