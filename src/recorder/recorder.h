/* The recorder owns the sampling thread, the worker and their results. recorder.c makes it, and
 * samples; profile.c makes profiles of the recording, at its end or while it runs, of all of it or
 * of its last part. */
#ifndef FGPROF_RECORDER_RECORDER_H
#define FGPROF_RECORDER_RECORDER_H

#include "recorder/copy.h"
#include "recorder/checkpoints.h"
#include "recorder/options.h"
#include "sampler/sampler.h"
#include "reader/lookup_reader.h"
#include "reader/reader.h"
#include "symbol/names/cache.h"
#include "wait/wait_list.h"
#include "worker/worker.h"

#include <pthread.h>

struct fgprof_recorder {
    struct fgprof_options options;
    struct channel *channel;
    struct sampler sampler;      /* belongs to the sampling thread while that runs */
    struct results results;      /* belong to the worker while it runs */
    struct worker *worker;       /* NULL until the recorder runs */
    struct wait_list *waits;     /* for a dump: what threads wait for; else NULL */
    struct runtime_tasks *tasks; /* the same, its goroutines and tasks of asyncio */
    struct checkpoints *checkpoints;
    int error; /* the first one that ended sampling early */
    bool has_run;

    _Atomic pid_t child; /* the spawned command, until it has been waited for; 0: none */
    uint64_t spawned_ns; /* CLOCK_MONOTONIC; 0: no command was spawned */

    pthread_mutex_t lock; /* protects the next fields and `error` */
    pthread_cond_t changed;
    bool is_sampling;
    bool sampler_has_ended;
    bool has_ended;  /* the worker: nothing more is counted */
    bool wants_copy; /* request flag, cleared by the worker */
    int copy_error;  /* 0, or why the copy is incomplete */

    struct copy copy;       /* belongs to the worker while it is wanted; else see `naming` */
    pthread_mutex_t naming; /* one thread at a time looks up names */
    struct reader *reader;
    struct lookup_reader *lookups; /* the worker's: slow naming never delays unwinding */
    struct name_cache names;
    bool has_names;                          /* the cache is in use */
    _Atomic uint64_t copy_bytes, name_bytes; /* of the copy and the cache, when last used */
};

/* Samples and counts until the end. Returns 0, or a negative errno if it could not begin. An error
 * that ends it early is in recorder->error. */
int recorder_sample(struct fgprof_recorder *recorder);

/* How many ticks were due by that time. */
uint64_t recorder_ticks_planned(const struct clock *clock, const struct sampling_counts *counts,
                                uint64_t until_ns);

/* Updates recorder->copy; while the worker runs, the worker does it. The caller holds
 * `recorder->naming`. Returns 0, -ESRCH if sampling has not begun, or -ENOMEM. */
int recorder_order_copy(struct fgprof_recorder *recorder);

#endif
