/* The source that reads sleeping threads as they are, and proves that they did not move. */
#ifndef FGPROF_OBSERVE_PROC_SOURCE_H
#define FGPROF_OBSERVE_PROC_SOURCE_H

#include "observe/source.h"
#include "observe/watch.h"

/* `watches` must outlive it. Returns 0 or -ENOMEM. */
int proc_source_new(struct watches *watches, struct source **ret_source);

#endif
