/* How much memory a recording keeps, by kind. One table decides what is limited, what is shown, and
 * how it is named. */
#ifndef FGPROF_WORKER_KEPT_MEMORY_H
#define FGPROF_WORKER_KEPT_MEMORY_H

#include "worker/results.h"

enum kept_kind {
    KEPT_CHECKPOINTS, /* beside the results, but limited with them */
    KEPT_STACKS,      /* and samples */
    KEPT_WAITS,       /* locks, and what else is waited for */
    KEPT_TIMELINE,
    KEPT_STRINGS, /* names of threads and programs, and of what they wait for */
    KEPT_OBJECTS, /* where allocations, pages, threads and values were made */
    KEPT_LABELS,
    KEPT_RUNTIME_FRAMES, /* functions of interpreters */
    KEPT_GOROUTINES,     /* what is known of each */
    KEPT_PROCESSES,      /* their times */
    KEPT_MAPPINGS,       /* of the spaces */
    KEPT_MODULES,        /* what was read of mapped files */
    KEPT_CODE,           /* generated code */
    /* Beside the results, and not limited: */
    KEPT_UNWINDING, /* rules that were looked up */
    KEPT_COPY,      /* of the results, which profiles are made from */
    KEPT_NAMES,     /* that were looked up for profiles */
    KEPT_KIND_COUNT,
};

/* As metrics and summaries show it. */
const char *kept_kind_name(enum kept_kind kind);

/* Bytes of one kind of the results; 0 for what is beside them. */
size_t kept_bytes(const struct results *results, enum kept_kind kind);

/* Bytes of all kinds of the results. The cost grows with the number of mappings and modules. */
size_t kept_bytes_all(const struct results *results);

/* Bytes of the kinds that are dropped with the results. Cheap. */
size_t kept_bytes_counted(const struct results *results);

/* Bytes of the other kinds; what running programs need of these can't be dropped. The cost grows
 * with the number of mappings and modules. */
size_t kept_bytes_of_programs(const struct results *results);

#endif
