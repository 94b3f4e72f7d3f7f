#ifndef FGPROF_RECORDER_RECORDER_H
#define FGPROF_RECORDER_RECORDER_H

#include "recorder/options.h"
#include "recorder/so_far.h"
#include "proc/family.h"
#include "sampler/target.h"
#include "symbol/names/cache.h"

#include <pthread.h>

struct fgprof_recorder {
    struct fgprof_options options;
    struct recording recording;
    struct target **targets;
    size_t target_count, target_capacity;
    struct family family; /* whose descendants are followed */
    pid_t child;          /* the spawned command, until its end was waited for */
    uint64_t spawned_ns;  /* CLOCK_MONOTONIC; 0: none was */
    int stop_fd;          /* an eventfd: readable once sampling is to end */
    bool has_run;
    uint64_t rest_until_ns;     /* no tick is taken before */
    uint64_t round_for_copy_ns; /* CLOCK_MONOTONIC: when the last one for a copy began */
    pthread_mutex_t lock;       /* for what follows */
    pthread_cond_t ended;       /* sampling has, or the copy that was asked for is made */
    bool is_sampling;
    bool has_ended;
    bool wants_copy;        /* of the sampling thread, which sets it back: */
    int copy_error;         /* 0, or why the copy is not whole */
    struct so_far copy;     /* the sampling thread's while it is wanted; else under `naming` */
    pthread_mutex_t naming; /* held while names are looked for: one thread does at a time */
    struct name_cache names;
    bool has_names; /* the cache is in use */
    struct fgprof_progress progress;
};

/* Opens `pid` as one more target. Returns 0 or what process_open does. */
int recorder_add_target(struct fgprof_recorder *recorder, pid_t pid, struct target **ret_target);

#endif
