/* Frees what an endless recording no longer needs, and renumbers the rows that stay:
 *
 * - samples that were last counted before an epoch, if only the last part of the recording is kept;
 * - waits, stacks, label sets and strings without a sample; spaces of ended programs without a
 *   stack; generated code that was replaced; and modules without a mapping
 *   (worker/unused_modules.h);
 * - frames of runtimes without a stack, if many were added;
 * - single threads and processes that have ended: these are merged (worker/ended_threads.h,
 *   worker/ended_processes.h). */
#ifndef FGPROF_WORKER_COMPACT_H
#define FGPROF_WORKER_COMPACT_H

#include "worker/owners.h"
#include "worker/programs.h"

/* What to do with samples that were last counted before an epoch and that nothing refers to. */
enum old_samples {
    OLD_STAY, /* keep them */
    OLD_JOIN, /* join those of ended threads and processes */
    OLD_GO,   /* drop them */
};

struct compaction {
    enum old_samples old;
    uint32_t epoch;            /* of the stack table */
    struct rule_tables *rules; /* forgets spaces and modules that go; may be NULL */
    struct programs *programs; /* their goroutines refer to samples, their Python code to texts;
                                  may be NULL */
};

/* No waits may be held (worker/owners.h). Returns 0 or -ENOMEM, and then nothing that was counted
 * is lost. */
int compact(struct results *results, struct counted_threads *threads, struct owners *owners,
            const struct compaction *how);

#endif
