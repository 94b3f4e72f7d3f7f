/* How to sample: the sampling thread's options. */
#ifndef FGPROF_SAMPLER_OPTIONS_H
#define FGPROF_SAMPLER_OPTIONS_H

#include "objects/source.h"
#include "sampler/thread_choice.h"

#include <stdint.h>

/* How running threads are observed. */
enum capture {
    CAPTURE_AUTO,   /* sampled by the kernel if that is permitted, else stopped */
    CAPTURE_KERNEL, /* sampled by the kernel; an error if that is not permitted */
    CAPTURE_PTRACE, /* stopped; switches are not recorded */
    CAPTURE_RECORD, /* like CAPTURE_AUTO; an error if recording switches is not permitted */
};

struct sampler_options {
    enum capture capture;
    uint64_t period_ns;
    uint64_t duration_ns; /* 0: without end */
    bool has_seed;        /* `seed` decides the times of ticks; else a random seed does */
    uint64_t seed;
    double max_pause_percent;
    bool has_kernel_stacks;
    bool has_children;        /* descendants are sampled too */
    bool is_dump;             /* each thread is observed once */
    uint64_t moment_every_ns; /* how often moments are to be noted; 0: never */
    struct thread_choice choice;
    bool has_tasks;         /* ticks are reported to the worker for asyncio tasks */
    bool has_no_goroutines; /* threads of Go programs are shown instead */
    bool has_no_time;       /* threads are not observed, only objects */
    struct object_options objects;
    /* Called with the reason why BPF programs were refused, once, in any thread. May be NULL. */
    void (*take_bpf_log)(const char *log, void *context);
    void *bpf_log_context;
};

/* Whether sampling has to list threads. */
static inline bool sampler_lists_threads(const struct sampler_options *options)
{
    return !options->has_no_time || options->objects.kinds[OBJECT_THREAD];
}

#endif
