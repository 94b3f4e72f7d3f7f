/* The functions of fgprof.h for options: how to sample, and how to label the samples. */
#include "recorder/options.h"
#include "agent/format.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RATE_DEFAULT_HZ 99 /* not 100, so as not to keep step with the target's timers */
#define RATE_MAX_HZ 1000
#define DEPTH_DEFAULT 1024
#define MAX_PAUSE_DEFAULT_PERCENT 2
#define KEEP_BYTES_MIN (1u << 20)

int fgprof_options_new(fgprof_options **ret_options)
{
    fgprof_options *options = calloc(1, sizeof *options);
    if (!options)
        return -ENOMEM;
    options->sampler.period_ns = NS_PER_S / RATE_DEFAULT_HZ;
    options->sampler.objects.heap_rate = AGENT_RATE_DEFAULT;
    options->max_depth = DEPTH_DEFAULT;
    options->sampler.max_pause_percent = MAX_PAUSE_DEFAULT_PERCENT;
    *ret_options = options;
    return 0;
}

void fgprof_options_free(fgprof_options *options)
{
    if (options)
        thread_choice_free(&options->sampler.choice);
    if (options)
        free(options->slow_key);
    free(options);
}

int fgprof_options_set_rate(fgprof_options *options, unsigned hertz)
{
    if (hertz < 1 || hertz > RATE_MAX_HZ)
        return -ERANGE;
    options->sampler.period_ns = NS_PER_S / hertz;
    return 0;
}

int fgprof_options_set_duration_ns(fgprof_options *options, uint64_t duration_ns)
{
    options->sampler.duration_ns = duration_ns;
    return 0;
}

int fgprof_options_set_seed(fgprof_options *options, uint64_t seed)
{
    options->sampler.has_seed = true;
    options->sampler.seed = seed;
    return 0;
}

int fgprof_options_set_max_depth(fgprof_options *options, size_t frames)
{
    if (frames < 1)
        return -ERANGE;
    options->max_depth = frames;
    return 0;
}

int fgprof_options_set_max_pause(fgprof_options *options, double percent)
{
    /* NaN is out of range too. */
    if (!(percent > 0 && percent <= 100))
        return -ERANGE;
    options->sampler.max_pause_percent = percent;
    return 0;
}

_Static_assert((int)CAPTURE_AUTO == FGPROF_CAPTURE_AUTO &&
                   (int)CAPTURE_KERNEL == FGPROF_CAPTURE_KERNEL &&
                   (int)CAPTURE_PTRACE == FGPROF_CAPTURE_PTRACE &&
                   (int)CAPTURE_RECORD == FGPROF_CAPTURE_RECORD,
               "the sampler's ways to capture are those of fgprof.h");

int fgprof_options_set_capture(fgprof_options *options, enum fgprof_capture capture)
{
    if (capture != FGPROF_CAPTURE_AUTO && capture != FGPROF_CAPTURE_KERNEL &&
        capture != FGPROF_CAPTURE_PTRACE && capture != FGPROF_CAPTURE_RECORD)
        return -EINVAL;
    options->sampler.capture = (enum capture)capture;
    return 0;
}

int fgprof_options_set_threads(fgprof_options *options, enum fgprof_threads threads)
{
    if (threads != FGPROF_THREADS_BY_NAME && threads != FGPROF_THREADS_BY_ID)
        return -EINVAL;
    options->threads = threads;
    return 0;
}

int fgprof_options_set_thread_name(fgprof_options *options, const char *regex)
{
    return thread_choice_set_name(&options->sampler.choice, regex);
}

int fgprof_options_add_thread_id(fgprof_options *options, pid_t tid)
{
    return tid > 0 ? thread_choice_add_tid(&options->sampler.choice, tid) : -EINVAL;
}

int fgprof_options_set_idle(fgprof_options *options, bool are_kept)
{
    options->drops_idle = !are_kept;
    return 0;
}

int fgprof_options_set_names(fgprof_options *options, enum fgprof_names names)
{
    if (names != FGPROF_NAMES_SHORT && names != FGPROF_NAMES_FULL && names != FGPROF_NAMES_RAW)
        return -EINVAL;
    options->names = names;
    return 0;
}

int fgprof_options_set_native_frames(fgprof_options *options, bool are_kept)
{
    options->keeps_native_frames = are_kept;
    return 0;
}

int fgprof_options_set_goroutines(fgprof_options *options, bool are_wanted)
{
    options->sampler.has_no_goroutines = !are_wanted;
    return 0;
}

int fgprof_options_set_tasks(fgprof_options *options, bool are_wanted)
{
    options->sampler.has_tasks = are_wanted;
    return 0;
}

int fgprof_options_set_kernel_stacks(fgprof_options *options, bool are_wanted)
{
    options->sampler.has_kernel_stacks = are_wanted;
    return 0;
}

int fgprof_options_set_children(fgprof_options *options, bool are_followed)
{
    options->sampler.has_children = are_followed;
    return 0;
}

int fgprof_options_set_timeline(fgprof_options *options, bool is_wanted)
{
    options->has_timeline = is_wanted;
    return 0;
}

int fgprof_options_set_keep(fgprof_options *options, uint64_t keep_ns, uint64_t bytes)
{
    if (bytes ? bytes < KEEP_BYTES_MIN : !keep_ns)
        return -ERANGE;
    options->keep_ns = keep_ns;
    options->keep_bytes = bytes > SIZE_MAX ? SIZE_MAX : (size_t)bytes;
    return 0;
}

int fgprof_options_set_keep_stacks(fgprof_options *options, bool are_kept)
{
    options->keeps_stacks = are_kept;
    return 0;
}

int fgprof_options_add_objects(fgprof_options *options, enum fgprof_kind kind)
{
    bool *kinds = options->sampler.objects.kinds;
    switch (kind) {
    case FGPROF_KIND_HEAP:
    case FGPROF_KIND_ALLOCS:
        kinds[OBJECT_ALLOCATION] = true;
        return 0;
    case FGPROF_KIND_GROWTH:
        kinds[OBJECT_PAGE] = true;
        return 0;
    case FGPROF_KIND_THREADCREATE:
        kinds[OBJECT_THREAD] = true;
        return 0;
    case FGPROF_KIND_CUSTOM:
        kinds[OBJECT_VALUE] = true;
        return 0;
    default:
        return -EINVAL;
    }
}

int fgprof_options_set_time(fgprof_options *options, bool is_recorded)
{
    options->sampler.has_no_time = !is_recorded;
    return 0;
}

int fgprof_options_set_heap(fgprof_options *options, uint64_t rate_bytes, bool has_mappings)
{
    if (!rate_bytes)
        return -ERANGE;
    options->sampler.objects.heap_rate = rate_bytes;
    options->sampler.objects.has_mappings = has_mappings;
    return 0;
}

int fgprof_options_set_trace_ids(fgprof_options *options, bool are_wanted)
{
    options->has_trace_ids = are_wanted;
    return 0;
}

int fgprof_options_set_slow(fgprof_options *options, const char *key, uint64_t min_ns)
{
    if (!*key)
        return -EINVAL;
    char *copy = strdup(key);
    if (!copy)
        return -ENOMEM;
    free(options->slow_key);
    options->slow_key = copy;
    options->slow_ns = min_ns;
    return 0;
}

int fgprof_options_set_progress(fgprof_options *options, fgprof_progress_fn *callback,
                                void *context)
{
    options->progress = callback;
    options->progress_context = context;
    return 0;
}

int fgprof_options_set_bpf_log(fgprof_options *options, fgprof_bpf_log_fn *callback, void *context)
{
    options->sampler.take_bpf_log = callback;
    options->sampler.bpf_log_context = context;
    return 0;
}

int fgprof_options_set_debuginfod(fgprof_options *options, uint64_t limit_ns,
                                  fgprof_fetch_fn *callback, void *context)
{
    if (limit_ns && !debug_fetch_is_possible())
        return -ENOTSUP;
    options->fetch = (struct debug_fetch){
        .limit_ns = limit_ns, .progress = callback, .progress_context = context};
    return 0;
}
