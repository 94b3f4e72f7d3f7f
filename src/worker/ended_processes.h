/* Joins what is kept of processes that have ended, by the name of their program, so that it does
 * not grow with their number; and frees their rows. */
#ifndef FGPROF_WORKER_ENDED_PROCESSES_H
#define FGPROF_WORKER_ENDED_PROCESSES_H

#include "worker/owners.h"

/* Zeroed at first. */
struct ended_processes {
    struct renumber rows; /* those that have ended, and that nothing new refers to */
    uint32_t *joined;     /* by row: the row that has their time now, or the row itself */
};

/* Finds the processes that had ended by `epoch`. What they made is joined, and if `joins_samples`
 * their time: in stacks that equal programs share (mapping/spaces.h). Samples of other processes
 * that waited for them are changed, too. None of these samples was counted since, or is in
 * `in_use`. Returns 0 or -ENOMEM; then some are joined. */
int ended_processes_join(struct ended_processes *ended, struct results *results,
                         const struct counted_threads *threads, uint32_t epoch,
                         const struct renumber *in_use, bool joins_samples);

/* Frees the rows of those that nothing refers to any more. */
void ended_processes_drop(struct ended_processes *ended, struct results *results,
                          struct owners *owners);

void ended_processes_free(struct ended_processes *ended);

#endif
