/* The recorder: owns the sampling thread and the worker, and what comes of them. */
#ifndef FGPROF_RECORDER_RECORDER_H
#define FGPROF_RECORDER_RECORDER_H

#include "recorder/copy.h"
#include "recorder/options.h"
#include "sampler/sampler.h"
#include "symbol/names/cache.h"
#include "wait/facts.h"
#include "worker/worker.h"

#include <pthread.h>
#include <stdatomic.h>

struct fgprof_recorder {
    struct fgprof_options options;
    struct channel *channel;
    struct sampler sampler;  /* the sampling thread's while it runs */
    struct results results;  /* the worker's while it runs */
    struct worker *worker;   /* NULL until the recorder runs */
    struct wait_list *waits; /* of a dump: what threads wait for; else NULL */
    int error;               /* the first that ended sampling before its time */
    bool has_run;

    _Atomic pid_t child; /* the spawned command, until its end was waited for; 0: none */
    uint64_t spawned_ns; /* CLOCK_MONOTONIC; 0: none was */

    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t changed;
    bool is_sampling;
    bool has_ended;
    bool wants_copy; /* request flag, cleared by the worker */
    int copy_error;  /* 0, or why the copy is not whole */

    struct copy copy;       /* the worker's while it is wanted; else under `naming` */
    pthread_mutex_t naming; /* held while names are looked for: one thread does at a time */
    struct name_cache names;
    bool has_names; /* the cache is in use */
};

int recorder_new(const struct fgprof_options *options, struct fgprof_recorder **ret_recorder);
void recorder_free(struct fgprof_recorder *recorder);

/* Samples and counts until the end. Returns 0, or why it could not begin; an error that ended it
 * before its time is in recorder->error. */
int recorder_sample(struct fgprof_recorder *recorder);

/* Has the worker bring recorder->copy up to date. `recorder->naming` is held. Returns 0, -ESRCH if
 * sampling has not begun or has ended, or -ENOMEM. */
int recorder_order_copy(struct fgprof_recorder *recorder);

#endif
