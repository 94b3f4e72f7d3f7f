/* Counts what the sampling thread tells of objects (objects/source.h). */
#ifndef FGPROF_WORKER_OBJECTS_H
#define FGPROF_WORKER_OBJECTS_H

#include "worker/unwind_step.h"

/* Takes in a MESSAGE_OBJECT: unwinds the stack that made an object. `program` is the observation's,
 * and NULL only if there is no snapshot; `stack` is room. Returns 0 or -ENOMEM. */
int objects_take(const struct unwind_means *means, const struct message *message,
                 struct program_tables *program, struct stack *stack);

#endif
