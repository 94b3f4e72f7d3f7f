/* When a thread is looked at again. */
#ifndef FGPROF_SAMPLER_SCHEDULE_H
#define FGPROF_SAMPLER_SCHEDULE_H

#include "sampler/threads.h"

/* A look has proved that the thread slept on. That proves all ticks since the last look, so a
 * thread that sleeps long is looked at less often: if it moves after all, the unknown time is a
 * small part of its sleep. Among very many threads each is looked at less often from the start;
 * they take turns, so that each tick has its part of them. */
void schedule_unmoved(struct thread_schedule *schedule, const struct reading *proven, pid_t tid,
                      uint64_t period_ns, size_t thread_count);

/* A look has found that the thread moved at some time since the last one, at `last_look_tick`.
 * Returns for how many ticks in between its state is only assumed. */
uint64_t schedule_moved(struct thread_schedule *schedule, uint64_t last_look_tick);

#endif
