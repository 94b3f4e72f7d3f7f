#ifndef FGPROF_RECORDER_OPTIONS_H
#define FGPROF_RECORDER_OPTIONS_H

#include "fgprof.h"
#include "sampler/options.h"
#include "symbol/debug_fetch.h"

struct fgprof_options {
    struct sampler_options sampler;
    size_t max_depth;
    bool keeps_native_frames; /* see worker/worker.h */
    enum fgprof_threads threads;
    enum fgprof_names names;
    bool drops_idle; /* drop the samples of threads that never moved */
    bool has_timeline;
    uint64_t keep_ns;  /* 0: all is kept */
    size_t keep_bytes; /* SIZE_MAX: no limit; with keep_ns: and keeps_stacks */
    bool keeps_stacks; /* of all of the recording; keep_ns is for timelines only */
    bool has_trace_ids;
    char *slow_key; /* only spans of this label that last longer than slow_ns are kept; NULL: all */
    uint64_t slow_ns;
    struct debug_fetch fetch;
    fgprof_progress_fn *progress;
    void *progress_context;
};

#endif
