/* Thread ids in ascending order. */
#ifndef FGPROF_PROC_TIDS_H
#define FGPROF_PROC_TIDS_H

#include "base/upper_bound.h"

#include <stdbool.h>
#include <sys/types.h>

/* For qsort. */
static inline int tids_compare(const void *a, const void *b)
{
    const pid_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static inline bool tids_have(const pid_t *tids, size_t count, pid_t tid)
{
    size_t after = upper_bound(tids, count, sizeof *tids, 0, sizeof *tids, (uint32_t)tid);
    return after && tids[after - 1] == tid;
}

#endif
