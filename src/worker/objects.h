/* Counts what the collector reports about objects (objects/source.h). */
#ifndef FGPROF_WORKER_OBJECTS_H
#define FGPROF_WORKER_OBJECTS_H

#include "worker/unwind_step.h"

/* The observation to unwind for an object: of the thread that made it, which need not be part of
 * the recording. */
struct observation objects_observation(const struct object_news *news);

/* Handles a MESSAGE_OBJECT: unwinds the stack that made an object. `program` is that of the news,
 * and NULL only if there is no snapshot; `stack` is scratch space. Returns 0 or -ENOMEM. */
int objects_take(const struct means *means, const struct object_news *news,
                 struct program_tables *program, struct stack *stack);

#endif
