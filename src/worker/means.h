/* What the steps of the worker use, and do not own. */
#ifndef FGPROF_WORKER_MEANS_H
#define FGPROF_WORKER_MEANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span_options {
    const char *key; /* NULL: all samples are kept */
    uint64_t min_ns; /* of a span that is kept */
};

struct means {
    struct channel *channel; /* for requests */
    struct results *results;
    struct rule_tables *rules;
    struct queries *queries; /* NULL: none */
    struct owners *owners;
    struct peer_waits *peers; /* the owners' */
    struct kernel_names *kernel_names;
    struct wait_list *waits;     /* for a dump, in which each thread is counted once; else NULL */
    struct runtime_tasks *tasks; /* the same, of goroutines and tasks of asyncio */
    struct span_options spans;
    uint64_t period_ns;
    size_t max_depth;         /* frames kept of a stack */
    bool keeps_native_frames; /* the Python interpreter's */
    bool tells_threads_apart; /* by their ids, and goroutines and tasks */
};

#endif
