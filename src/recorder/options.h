#ifndef FGPROF_RECORDER_OPTIONS_H
#define FGPROF_RECORDER_OPTIONS_H

#include "fgprof.h"
#include "sampler/options.h"
#include "symbol/debug_fetch.h"

struct fgprof_options {
    unsigned rate_hz;
    uint64_t duration_ns; /* 0: without end */
    struct sampling_options sampling;
    enum fgprof_names names;
    bool has_children;
    bool has_timeline;
    struct debug_fetch fetch;
    fgprof_progress_fn *progress;
    void *progress_context;
};

#endif
