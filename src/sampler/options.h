/* How to sample: the options that the sampling thread needs. */
#ifndef FGPROF_SAMPLER_OPTIONS_H
#define FGPROF_SAMPLER_OPTIONS_H

#include "fgprof.h"
#include "sampler/choice.h"

struct sampling_options {
    size_t max_depth;
    double max_pause_percent;
    enum fgprof_threads threads;
    bool has_kernel_stacks;
    struct thread_choice choice;
    bool drops_idle; /* samples of threads that never moved */
};

/* Whether each thread has samples of its own while sampling. */
static inline bool options_tells_threads_apart(const struct sampling_options *options)
{
    return options->threads == FGPROF_THREADS_BY_ID || options->drops_idle;
}

#endif
