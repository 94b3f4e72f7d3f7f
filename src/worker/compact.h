/* Drops what a recording that keeps only its last part does not need any more: samples that were
 * not counted since an epoch and that nothing refers to, what only they waited for, stacks and
 * label sets that are left without a sample, and mappings of ended programs that are left without a
 * stack. The rest gets new numbers, wherever these are noted. */
#ifndef FGPROF_WORKER_COMPACT_H
#define FGPROF_WORKER_COMPACT_H

#include "worker/owners.h"

/* Keeps samples that were counted after `epoch`. No waits may be held. Returns 0 or -ENOMEM, and
 * then nothing has changed. */
int compact(struct results *results, struct counted_threads *threads, struct owners *owners,
            uint32_t epoch);

#endif
