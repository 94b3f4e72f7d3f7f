/* The public recorder: targets, the thread that samples them, and the profile that comes of it. */
#include "recorder/recorder.h"
#include "recorder/profile.h"
#include "base/clock.h"
#include "proc/kernel_stack.h"
#include "sampler/idle.h"
#include "sampler/sampler.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define PROGRESS_PERIOD_NS 200000000
#define FDS_FOR_MODULES 256 /* of the limit of open files, kept free of threads' files */

int fgprof_recorder_new(const fgprof_options *options, fgprof_recorder **ret_recorder)
{
    int err = options->sampling.has_kernel_stacks ? kernel_stack_check() : 0;
    if (err)
        return err;
    fgprof_recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        return -ENOMEM;
    recorder->options = *options;
    recorder->options.sampling.choice = (struct thread_choice){0};
    recorder->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    err = recorder->stop_fd < 0 ? -errno : recording_init(&recorder->recording);
    if (!err)
        err = thread_choice_copy(&options->sampling.choice, &recorder->options.sampling.choice);
    if (err) {
        fgprof_recorder_free(recorder);
        return err;
    }
    recorder->recording.period_ns = 1000000000u / options->rate_hz;
    if (options->has_timeline)
        timeline_want(&recorder->recording.timeline, recorder->recording.period_ns,
                      TIMELINE_RUNS_MAX);
    pthread_mutex_init(&recorder->lock, NULL);
    pthread_mutex_init(&recorder->naming, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&recorder->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret_recorder = recorder;
    return 0;
}

void fgprof_recorder_free(fgprof_recorder *recorder)
{
    if (!recorder)
        return;
    for (size_t i = 0; i < recorder->target_count; i++) {
        target_close(recorder->targets[i]);
        free(recorder->targets[i]);
    }
    free(recorder->targets);
    family_free(&recorder->family);
    so_far_free(&recorder->copy);
    name_cache_free(&recorder->names);
    recording_free(&recorder->recording);
    thread_choice_free(&recorder->options.sampling.choice);
    if (recorder->stop_fd >= 0)
        close(recorder->stop_fd);
    free(recorder);
}

int fgprof_recorder_attach(fgprof_recorder *recorder, pid_t pid)
{
    struct target *target;
    for (size_t i = 0; i < recorder->target_count; i++) {
        if (recorder->targets[i]->process.pid == pid)
            return -EEXIST;
    }
    return recorder_add_target(recorder, pid, &target);
}

bool fgprof_recorder_has_thread(const fgprof_recorder *recorder, pid_t tid)
{
    for (size_t i = 0; i < recorder->target_count; i++) {
        if (process_has_thread(&recorder->targets[i]->process, tid))
            return true;
    }
    return false;
}

void fgprof_recorder_stop(fgprof_recorder *recorder)
{
    int saved_errno = errno;
    uint64_t one = 1;
    ssize_t written = write(recorder->stop_fd, &one, sizeof one);
    (void)written; /* full means that it was asked before */
    errno = saved_errno;
}

/* Up to three files are kept open for each thread that is sampled. */
static void raise_file_limit(struct recording *recording)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        limit.rlim_cur = before;
    recording->keep_fds_below = limit.rlim_cur > INT_MAX ? INT_MAX : (int)limit.rlim_cur;
    recording->keep_fds_below -= FDS_FOR_MODULES;
}

/* Signals are for the caller's threads: none interrupts a sample. */
static int start_thread(struct fgprof_recorder *recorder, pthread_t *ret_thread)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(ret_thread, NULL, sampler_main, recorder);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -err;
}

/* Calls the progress callback from time to time, until sampling has ended. In the caller's thread,
 * so that a slow terminal costs no tick. */
static void await_end(struct fgprof_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    while (!recorder->has_ended) {
        struct timespec until = timespec_of_ns(monotonic_ns() + PROGRESS_PERIOD_NS);
        pthread_cond_timedwait(&recorder->ended, &recorder->lock, &until);
        struct fgprof_progress progress = recorder->progress;
        if (!recorder->options.progress)
            continue;
        pthread_mutex_unlock(&recorder->lock);
        recorder->options.progress(&progress, recorder->options.progress_context);
        pthread_mutex_lock(&recorder->lock);
    }
    pthread_mutex_unlock(&recorder->lock);
}

/* Meanwhile SIGCHLD is blocked in the caller's thread, so that it comes to the one that samples. */
static int sample_in_thread(struct fgprof_recorder *recorder)
{
    pthread_t thread;
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &stops, &before);
    int err = start_thread(recorder, &thread);
    if (!err) {
        pthread_mutex_lock(&recorder->lock);
        recorder->is_sampling = true;
        pthread_mutex_unlock(&recorder->lock);
        await_end(recorder);
        pthread_join(thread, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

int fgprof_recorder_run(fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    struct recording *recording = &recorder->recording;
    if (recorder->has_run)
        return -EALREADY;
    if (!recorder->target_count && !recorder->child)
        return -ESRCH;
    recorder->has_run = true;
    recording->start_time_ns = wall_ns();
    recording->start_ns = recorder->spawned_ns ? recorder->spawned_ns : monotonic_ns();
    recording->timeline.start_ns = recording->start_ns;
    raise_file_limit(recording);
    int err = sample_in_thread(recorder);
    if (err)
        return err;
    idle_drop(recording, recorder->options.sampling.threads == FGPROF_THREADS_BY_ID);
    pthread_mutex_lock(&recorder->naming);
    err = recorder_make_profile(recorder, recording, ret_profile);
    pthread_mutex_unlock(&recorder->naming);
    return err;
}

int fgprof_recorder_profile_so_far(fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    return recorder_profile_so_far(recorder, ret_profile);
}
