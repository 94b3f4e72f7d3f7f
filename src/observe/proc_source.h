/* The source that reads sleeping threads as they are, and proves that they did not move. */
#ifndef FGPROF_OBSERVE_PROC_SOURCE_H
#define FGPROF_OBSERVE_PROC_SOURCE_H

#include "observe/subject.h"
#include "observe/watch.h"

/* Observes a thread into `observation`, whose snapshot has room for the wanted stacks. */
enum outcome proc_source_observe(struct watches *watches, const struct subject *subject,
                                 struct observation *observation);

#endif
