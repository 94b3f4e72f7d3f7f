/* Merges the results of processes that have ended, by program name, and frees their rows. So memory
 * grows with the number of programs, and not of processes. */
#ifndef FGPROF_WORKER_ENDED_PROCESSES_H
#define FGPROF_WORKER_ENDED_PROCESSES_H

#include "worker/owners.h"

/* Zeroed at first. */
struct ended_processes {
    struct renumber rows; /* keeps the ended processes that have no new samples */
    uint32_t *joined;     /* by row: the row that now holds its time; the same row if not joined */
};

/* Finds the processes that had ended by `epoch`, and merges their makers. If `joins_samples`,
 * merges their samples too, with stacks in the shared space (mapping/spaces.h), and updates samples
 * of other processes that waited for them. Skips samples that were counted since, or are in
 * `in_use`. Returns 0, or -ENOMEM, and then some are merged. */
int ended_processes_join(struct ended_processes *ended, struct results *results,
                         const struct counted_threads *threads, uint32_t epoch,
                         const struct renumber *in_use, bool joins_samples);

/* Frees the rows of ended processes that nothing refers to any more. */
void ended_processes_drop(struct ended_processes *ended, struct results *results,
                          struct owners *owners);

void ended_processes_free(struct ended_processes *ended);

#endif
