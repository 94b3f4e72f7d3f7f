/* Thread ids in ascending order. Negative numbers, which stand for other things than threads, are
 * in order, too. */
#ifndef FGPROF_PROC_TIDS_H
#define FGPROF_PROC_TIDS_H

#include <stdbool.h>
#include <stdlib.h>
#include <sys/types.h>

/* For qsort. */
static inline int tids_compare(const void *a, const void *b)
{
    const pid_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static inline bool tids_have(const pid_t *tids, size_t count, pid_t tid)
{
    return count && bsearch(&tid, tids, count, sizeof tid, tids_compare);
}

#endif
