/* Whether a thread has moved at all since the recording began (`--no-idle`). */
#ifndef FGPROF_SAMPLER_IDLE_H
#define FGPROF_SAMPLER_IDLE_H

#include "observe/bpf/departure.h"
#include "observe/subject.h"
#include "sampler/threads.h"

/* Call it after a look by the source that reads sleeping threads. */
void idle_note_look(struct thread_idle *idle, enum outcome outcome,
                    const struct observation *observation);

/* Call it for a completed time off the CPU: the thread was asleep, or only waited for a CPU. */
void idle_note_departure(struct thread_idle *idle, const struct departure *departure);

/* Call it after the stop of a running or a sleeping thread. */
void idle_note_stop(struct thread_idle *idle, const struct observation *observation);

#endif
