#ifndef FGPROF_RECORDER_OPTIONS_H
#define FGPROF_RECORDER_OPTIONS_H

#include "fgprof.h"
#include "symbol/debug_fetch.h"

struct fgprof_options {
    unsigned rate_hz;
    uint64_t duration_ns; /* 0: without end */
    size_t max_depth;
    double max_pause_percent;
    enum fgprof_threads threads;
    enum fgprof_names names;
    bool has_kernel_stacks;
    bool has_children;
    struct debug_fetch fetch;
    fgprof_progress_fn *progress;
    void *progress_context;
};

#endif
