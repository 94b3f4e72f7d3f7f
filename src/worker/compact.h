/* Drops what an endless recording does not need any more. If it keeps only its last part: samples
 * that were not counted since an epoch and that nothing refers to. And in any case what nothing
 * refers to: waits, stacks, label sets and strings that are left without a sample, mappings of
 * ended programs that are left without a stack, and what is known of each thread that made another
 * (worker/ended_threads.h). The rest gets new numbers, wherever these are noted. What is kept of
 * processes that have ended is joined (worker/ended_processes.h). */
#ifndef FGPROF_WORKER_COMPACT_H
#define FGPROF_WORKER_COMPACT_H

#include "worker/owners.h"

/* What becomes of samples that were not counted after an epoch, and that nothing refers to. */
enum old_samples {
    OLD_STAY,
    OLD_JOIN, /* those of ended threads and processes are joined */
    OLD_GO,
};

struct compaction {
    enum old_samples old;
    uint32_t epoch;            /* of the stack table */
    struct unwinder *unwinder; /* forgets generated code of spaces that go; may be NULL */
};

/* No waits may be held. Returns 0 or -ENOMEM, and then all that is counted stays. */
int compact(struct results *results, struct counted_threads *threads, struct owners *owners,
            const struct compaction *how);

#endif
