#include "recorder/recorder.h"
#include "proc/kernel_stack.h"
#include "base/background_thread.h"
#include "base/clock.h"
#include "sampler/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PROGRESS_PERIOD_NS 200000000
#define FDS_FOR_MODULES 256 /* of the limit of open files: not for the files of threads */
#define FDS_PER_THREAD 3

#define CHECKPOINTS_KEPT 12
#define CHECKPOINTS_EVERY_MIN_NS 500000000u
/* Timelines may take 1 / TIMELINE_PART of the memory or, next to stacks since the start, half of
 * that. */
#define TIMELINE_PART 2
#define KEEP_BYTES_DEFAULT (64u << 20)
/* Without checkpoints; beyond it, what has ended is no longer shown apart. */
#define KEEP_ALL_BYTES_DEFAULT (256u << 20)

static void init_timeline(struct fgprof_recorder *recorder, const struct fgprof_options *options)
{
    size_t runs_max = TIMELINE_RUNS_MAX;
    bool is_ring = options->keep_ns;
    /* Timelines would have gaps. */
    if (options->slow_key)
        return;
    size_t parts = options->keeps_stacks ? 2 * TIMELINE_PART : TIMELINE_PART;
    if (is_ring && options->keep_bytes / parts / sizeof(struct timeline_run) < runs_max)
        runs_max = options->keep_bytes / parts / sizeof(struct timeline_run);
    if (options->has_timeline || is_ring)
        timeline_want(&recorder->results.timeline, options->sampler.period_ns, runs_max, is_ring);
    if (options->has_timeline && !is_ring && options->sampler.capture != CAPTURE_PTRACE)
        recorder->results.timeline.ticks.runs_max = runs_max;
}

static void init_keeping(struct fgprof_options *options)
{
    uint64_t every_ns = options->keep_ns / CHECKPOINTS_KEPT;
    options->keeps_stacks |= options->keep_bytes == SIZE_MAX;
    if (!options->keep_bytes)
        options->keep_bytes = options->keep_ns && !options->keeps_stacks ? KEEP_BYTES_DEFAULT
                                                                         : KEEP_ALL_BYTES_DEFAULT;
    options->sampler.moment_every_ns = !options->keep_ns ? 0
                                       : every_ns < CHECKPOINTS_EVERY_MIN_NS
                                           ? CHECKPOINTS_EVERY_MIN_NS
                                           : every_ns;
}

static int init(struct fgprof_recorder *recorder, const struct fgprof_options *options)
{
    int err = results_init(&recorder->results);
    if (!err)
        err = checkpoints_new(options->keep_ns, !recorder->options.keeps_stacks,
                              &recorder->checkpoints);
    if (!err)
        err = channel_new(&recorder->channel);
    if (!err)
        err = sampler_init(&recorder->sampler, &recorder->options.sampler, recorder->channel);
    if (!err)
        err = thread_choice_copy(&options->sampler.choice, &recorder->options.sampler.choice);
    return err;
}

int fgprof_recorder_new(const fgprof_options *options, fgprof_recorder **ret_recorder)
{
    int err = options->sampler.has_kernel_stacks ? kernel_stack_check() : 0;
    if (err)
        return err;
    struct fgprof_recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        return -ENOMEM;
    recorder->options = *options;
    recorder->options.sampler.choice = (struct thread_choice){0};
    recorder->options.slow_key = NULL;
    init_keeping(&recorder->options);
    pthread_mutex_init(&recorder->lock, NULL);
    pthread_mutex_init(&recorder->naming, NULL);
    condition_init(&recorder->changed);
    err = reader_new(READER_LIMIT_MS, &recorder->reader);
    if (!err)
        err = lookup_reader_new(LOOKUP_LIMIT_MS, &recorder->lookups);
    if (!err)
        err = init(recorder, options);
    if (!err && options->slow_key) {
        recorder->options.slow_key = strdup(options->slow_key);
        err = recorder->options.slow_key ? 0 : -ENOMEM;
    }
    if (err) {
        fgprof_recorder_free(recorder);
        return err;
    }
    recorder->results.has_trace_ids = options->has_trace_ids;
    recorder->results.modules.naming = &recorder->naming;
    init_timeline(recorder, &recorder->options);
    *ret_recorder = recorder;
    return 0;
}

void fgprof_recorder_free(fgprof_recorder *recorder)
{
    if (!recorder)
        return;
    worker_free(recorder->worker);
    sampler_free(&recorder->sampler);
    channel_free(recorder->channel);
    results_free(&recorder->copy.results);
    checkpoints_release(recorder->checkpoints);
    name_cache_free(&recorder->names);
    reader_free(recorder->reader);
    lookup_reader_free(recorder->lookups);
    results_free(&recorder->results);
    thread_choice_free(&recorder->options.sampler.choice);
    free(recorder->options.slow_key);
    pthread_cond_destroy(&recorder->changed);
    pthread_mutex_destroy(&recorder->naming);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
}

int fgprof_recorder_attach(fgprof_recorder *recorder, pid_t pid)
{
    return processes_add(&recorder->sampler, pid);
}

bool fgprof_recorder_has_thread(const fgprof_recorder *recorder, pid_t tid)
{
    const struct sampler *sampler = &recorder->sampler;
    for (size_t i = 0; i < sampler->process_count; i++) {
        if (process_has_thread(&sampler->processes[i]->process, tid))
            return true;
    }
    return false;
}

const char *fgprof_recorder_kept_memory(const fgprof_recorder *recorder, size_t kind,
                                        uint64_t *ret_bytes)
{
    if (kind >= KEPT_KIND_COUNT)
        return NULL;
    if (kind == KEPT_COPY || kind == KEPT_NAMES)
        *ret_bytes = atomic_load(kind == KEPT_COPY ? &recorder->copy_bytes : &recorder->name_bytes);
    else
        *ret_bytes =
            recorder->worker ? atomic_load(&worker_progress(recorder->worker)->kept[kind]) : 0;
    return kept_kind_name((enum kept_kind)kind);
}

void fgprof_recorder_stop(fgprof_recorder *recorder)
{
    sampler_stop(&recorder->sampler);
}

/* Returns how many files of sampled threads may be open. */
static int raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 0;
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        limit.rlim_cur = before;
    int files = limit.rlim_cur > INT_MAX ? INT_MAX : (int)limit.rlim_cur;
    return files - FDS_FOR_MODULES;
}

/* When threads share a table of open files, each doubling of it waits for an RCU grace period, some
 * 10 ms (expand_fdtable in the kernel's fs/file.c). So it gets its full size here, before there are
 * ticks to delay. */
static void make_room_for_files(const struct sampler *sampler)
{
    size_t wanted = FDS_PER_THREAD * processes_count_threads(sampler);
    int most = sampler->watches.keep_fds_below;
    if (wanted < FDS_FOR_MODULES || most <= 0)
        return;
    wanted += FDS_FOR_MODULES;
    int fd = fcntl(sampler->processes[0]->process.proc_fd, F_DUPFD_CLOEXEC,
                   wanted < (size_t)most ? (int)wanted : most - 1);
    if (fd >= 0)
        close(fd);
}

/* Runs in the worker's thread. */
static void make_copy(void *context, const struct results *results, const struct message *message)
{
    struct fgprof_recorder *recorder = context;
    int err = copy_update(&recorder->copy, results, message->state);
    atomic_store(&recorder->copy_bytes, kept_bytes_all(&recorder->copy.results));
    pthread_mutex_lock(&recorder->lock);
    recorder->copy_error = err;
    recorder->wants_copy = false;
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->lock);
}

uint64_t recorder_ticks_planned(const struct clock *clock, const struct sampling_counts *counts,
                                uint64_t until_ns)
{
    return sampling_ticks_planned(counts, ticks_period_at(&clock->ticks, until_ns));
}

/* Runs in the worker's thread. If memory is short, profiles begin earlier than they could. */
static bool keep_checkpoint(void *context, const struct results *results,
                            const struct sampling_state *state,
                            struct worker_checkpoints *ret_checkpoints)
{
    struct fgprof_recorder *recorder = context;
    struct checkpoint *checkpoint;
    uint64_t planned =
        recorder_ticks_planned(&recorder->sampler.clock, &state->counts, state->now_ns);
    if (checkpoint_take(results, state, planned, &checkpoint) == 0 &&
        checkpoints_keep(recorder->checkpoints, checkpoint))
        checkpoint_free(checkpoint);
    return checkpoints_need(recorder->checkpoints, false, ret_checkpoints);
}

/* Runs in the worker's thread. What callers hold is given up only with the stacks. */
static bool keep_less(void *context, struct worker_checkpoints *ret_checkpoints)
{
    struct fgprof_recorder *recorder = context;
    bool keeps_stacks = recorder->options.keeps_stacks;
    bool is_less = checkpoints_give_up(recorder->checkpoints);
    bool may = checkpoints_need(recorder->checkpoints, !keeps_stacks, ret_checkpoints);
    return is_less && (may || keeps_stacks);
}

/* Runs in the worker's thread. */
static uint32_t held_since(void *context, uint32_t epoch)
{
    struct fgprof_recorder *recorder = context;
    return checkpoints_held_since(recorder->checkpoints, epoch);
}

/* Runs in the worker's thread. */
static void order_checkpoint(void *context)
{
    struct fgprof_recorder *recorder = context;
    atomic_store(&recorder->sampler.progress.wants_moment, true);
}

int recorder_order_copy(struct fgprof_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    bool has_begun = recorder->is_sampling;
    recorder->wants_copy = has_begun;
    if (has_begun)
        atomic_store(&recorder->sampler.progress.wants_copy, true);
    while (recorder->wants_copy && !(recorder->has_ended && recorder->sampler_has_ended))
        pthread_cond_wait(&recorder->changed, &recorder->lock);
    bool was_made = has_begun && !recorder->wants_copy;
    int err = was_made ? recorder->copy_error : -ESRCH;
    recorder->wants_copy = false;
    pthread_mutex_unlock(&recorder->lock);
    if (was_made || !has_begun)
        return err;
    const struct sampling_state last = {recorder->sampler.counts, recorder->sampler.clock.end_ns};
    return copy_update(&recorder->copy, &recorder->results, &last);
}

/* Runs in the worker's thread when it fails: nothing more could be counted. */
static void stop_sampling(void *context)
{
    struct fgprof_recorder *recorder = context;
    sampler_stop(&recorder->sampler);
}

/* Keeps the first error. */
static void note_error(struct fgprof_recorder *recorder, int err)
{
    pthread_mutex_lock(&recorder->lock);
    if (!recorder->error)
        recorder->error = err;
    pthread_mutex_unlock(&recorder->lock);
}

static void *sampler_main(void *context)
{
    struct fgprof_recorder *recorder = context;
    note_error(recorder, sampler_run(&recorder->sampler));
    pthread_mutex_lock(&recorder->lock);
    recorder->sampler_has_ended = true;
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->lock);
    return NULL;
}

static void *collector_main(void *context)
{
    struct fgprof_recorder *recorder = context;
    note_error(recorder, collector_run(recorder->sampler.collector));
    return NULL;
}

static void *worker_main(void *context)
{
    struct fgprof_recorder *recorder = context;
    note_error(recorder, worker_run(recorder->worker));
    pthread_mutex_lock(&recorder->lock);
    recorder->has_ended = true;
    pthread_cond_broadcast(&recorder->changed);
    pthread_mutex_unlock(&recorder->lock);
    return NULL;
}

static struct fgprof_progress progress_of(struct fgprof_recorder *recorder)
{
    struct sampler_progress *progress = &recorder->sampler.progress;
    const struct worker_progress *counted = worker_progress(recorder->worker);
    return (struct fgprof_progress){
        .bytes = sizeof(struct fgprof_progress),
        .elapsed_ns = atomic_load(&progress->elapsed_ns),
        .duration_ns = recorder->options.sampler.duration_ns,
        .threads = atomic_load(&progress->threads),
        .samples = atomic_load(&counted->samples),
        .stacks = atomic_load(&counted->stacks),
        .ticks_late = atomic_load(&progress->ticks_late),
        .deadlocks = atomic_load(&counted->deadlocks),
        .ticks = atomic_load(&progress->ticks),
        .samples_lost = atomic_load(&progress->samples_lost),
        .samples_not_kept = atomic_load(&counted->samples_not_kept),
        .processes_joined = atomic_load(&counted->processes_joined),
    };
}

/* Calls the progress callback until the worker has ended. This runs in the caller's thread, so that
 * a slow terminal delays no tick. */
static void await_end(struct fgprof_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    while (!recorder->has_ended) {
        struct timespec until = timespec_of_ns(monotonic_ns() + PROGRESS_PERIOD_NS);
        pthread_cond_timedwait(&recorder->changed, &recorder->lock, &until);
        if (!recorder->options.progress)
            continue;
        pthread_mutex_unlock(&recorder->lock);
        const struct fgprof_progress progress = progress_of(recorder);
        recorder->options.progress(&progress, recorder->options.progress_context);
        pthread_mutex_lock(&recorder->lock);
    }
    pthread_mutex_unlock(&recorder->lock);
}

/* If there are objects to collect. */
static int start_collector(struct fgprof_recorder *recorder, pthread_t *ret_thread)
{
    struct collector *collector = recorder->sampler.collector;
    if (!collector)
        return 0;
    collector_start(collector, recorder->sampler.command.pid);
    int err = background_thread_start(collector_main, recorder, ret_thread);
    if (err)
        news_queue_close(channel_news(recorder->channel));
    return err;
}

static int sample_in_threads(struct fgprof_recorder *recorder)
{
    struct collector *collector = recorder->sampler.collector;
    pthread_t sampler, worker, collecting;
    int err = background_thread_start(worker_main, recorder, &worker);
    if (err)
        return err;
    err = start_collector(recorder, &collecting);
    bool is_collecting = collector && !err;
    if (!err)
        err = background_thread_start(sampler_main, recorder, &sampler);
    if (err) {
        if (is_collecting) {
            collector_note(collector, (struct notice){.kind = NOTICE_END});
            pthread_join(collecting, NULL);
        }
        channel_close(recorder->channel);
        pthread_join(worker, NULL);
        return err;
    }
    pthread_mutex_lock(&recorder->lock);
    recorder->is_sampling = true;
    pthread_mutex_unlock(&recorder->lock);
    await_end(recorder);
    pthread_join(sampler, NULL);
    if (is_collecting)
        pthread_join(collecting, NULL);
    pthread_join(worker, NULL);
    return 0;
}

int recorder_sample(struct fgprof_recorder *recorder)
{
    struct clock *clock = &recorder->sampler.clock;
    const struct fgprof_options *options = &recorder->options;
    const struct worker_options worker_options = {
        .period_ns = options->sampler.period_ns,
        .max_depth = options->max_depth,
        .keeps_native_frames = options->keeps_native_frames,
        .has_kernel_stacks = options->sampler.has_kernel_stacks,
        .has_goroutines = !options->sampler.has_no_goroutines &&
                          thread_choice_is_all(&options->sampler.choice) && !options->slow_key,
        .has_tasks = recorder->tasks ||
                     (options->sampler.has_tasks &&
                      thread_choice_is_all(&options->sampler.choice) && !options->slow_key),
        .tells_threads_apart = options->threads == FGPROF_THREADS_BY_ID || options->drops_idle,
        .tells_goroutines = options->threads == FGPROF_THREADS_BY_ID && !options->keep_ns,
        .lookups = lookup_reader_lookups(recorder->lookups),
        .waits = recorder->waits,
        .tasks = recorder->tasks,
        .bytes_max = options->keep_bytes,
        .keeps_stacks = options->keeps_stacks,
        .checkpoint = options->keep_ns ? keep_checkpoint : NULL,
        .crowded = keep_less,
        .order_checkpoint = order_checkpoint,
        .held_since = held_since,
        .spans = {options->slow_key, options->slow_ns},
        .copy = make_copy,
        .failed = stop_sampling,
        .context = recorder,
    };
    int err = worker_new(&worker_options, recorder->channel, &recorder->results, &recorder->worker);
    if (err)
        return err;
    recorder->sampler.watches.keep_fds_below = raise_file_limit();
    make_room_for_files(&recorder->sampler);
    err = sampler_prepare(&recorder->sampler);
    if (err)
        return err;
    clock->ticks.start_ns = recorder->spawned_ns ? recorder->spawned_ns : monotonic_ns();
    clock->start_time_ns = wall_ns() - (monotonic_ns() - clock->ticks.start_ns);
    recorder->results.timeline.start_ns = clock->ticks.start_ns;
    recorder->sampler.command.pid = atomic_load(&recorder->child);
    /* SIGCHLD is blocked in the caller's thread, so that the sampling thread gets it. */
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &stops, &before);
    err = sample_in_threads(recorder);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}
