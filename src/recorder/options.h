#ifndef FGPROF_RECORDER_OPTIONS_H
#define FGPROF_RECORDER_OPTIONS_H

#include "fgprof.h"
#include "sampler/choice.h"
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
    struct thread_choice choice;
    bool drops_idle; /* samples of threads that never moved */
    bool has_timeline;
    struct debug_fetch fetch;
    fgprof_progress_fn *progress;
    void *progress_context;
};

/* Whether each thread has samples of its own while sampling. */
static inline bool options_tells_threads_apart(const struct fgprof_options *options)
{
    return options->threads == FGPROF_THREADS_BY_ID || options->drops_idle;
}

#endif
