/* The public recorder: targets, and a thread that samples them, tick by tick. */
#include "recorder/recorder.h"
#include "symbol/name_profile.h"
#include "base/array.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* After a round we rest for this many times as long as it took: sampling a process of very many
 * threads takes no more than a third of one CPU. Ticks in that time are late. */
#define REST_FACTOR 2
#define FDS_FOR_MODULES 256 /* of the limit of open files, kept free of threads' files */
#define PROGRESS_PERIOD_NS 200000000
/* Between ticks, how often threads that have not stopped yet are looked at. They wait for a CPU;
 * from when they get it, this is how long they stand still at the most. */
#define COLLECT_PERIOD_NS 100000
/* At the end, how long such threads are waited for. */
#define FINISH_WAIT_NS 50000000

int fgprof_recorder_new(const fgprof_options *options, fgprof_recorder **ret_recorder)
{
    fgprof_recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        return -ENOMEM;
    recorder->options = *options;
    recorder->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int err = recorder->stop_fd < 0 ? -errno : recording_init(&recorder->recording);
    if (err) {
        fgprof_recorder_free(recorder);
        return err;
    }
    recorder->recording.period_ns = 1000000000u / options->rate_hz;
    pthread_mutex_init(&recorder->lock, NULL);
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
    for (size_t i = 0; i < recorder->target_count; i++)
        target_close(&recorder->targets[i]);
    free(recorder->targets);
    recording_free(&recorder->recording);
    if (recorder->stop_fd >= 0)
        close(recorder->stop_fd);
    free(recorder);
}

int fgprof_recorder_attach(fgprof_recorder *recorder, pid_t pid)
{
    for (size_t i = 0; i < recorder->target_count; i++) {
        if (recorder->targets[i].process.pid == pid)
            return -EEXIST;
    }
    if (array_reserve((void **)&recorder->targets, &recorder->target_capacity,
                      recorder->target_count + 1, sizeof *recorder->targets))
        return -ENOMEM;
    int err = target_open(&recorder->targets[recorder->target_count], pid, &recorder->recording,
                          &recorder->options);
    if (!err)
        recorder->target_count++;
    return err;
}

/* The command gets the caller's signal mask, and the default for the two signals that a writer of
 * profiles ignores. */
static int set_signals(posix_spawnattr_t *attributes, const sigset_t *mask)
{
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    int err = posix_spawnattr_setsigmask(attributes, mask);
    if (!err)
        err = posix_spawnattr_setsigdefault(attributes, &defaults);
    if (!err)
        err = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return err;
}

int fgprof_recorder_spawn(fgprof_recorder *recorder, char *const argv[], int stdout_fd)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    pid_t child;
    if (recorder->child)
        return -EEXIST;
    if (posix_spawnattr_init(&attributes))
        return -ENOMEM;
    if (posix_spawn_file_actions_init(&actions)) {
        posix_spawnattr_destroy(&attributes);
        return -ENOMEM;
    }
    /* No handler of the caller's may look for the command before it is known. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = set_signals(&attributes, &before);
    if (!err && stdout_fd >= 0)
        err = posix_spawn_file_actions_adddup2(&actions, stdout_fd, STDOUT_FILENO);
    /* Returns when the exec has succeeded (posix_spawn(3), since glibc 2.24), so that nothing of
     * ours is ever in the child that is sampled. */
    if (!err)
        err = posix_spawnp(&child, argv[0], &actions, &attributes, argv, environ);
    if (!err)
        recorder->child = child;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (err)
        return -err;
    recorder->spawned_ns = monotonic_ns();
    err = fgprof_recorder_attach(recorder, child);
    return err == -ESRCH ? 0 : err; /* it has ended already: a run without samples */
}

/* The target whose end as a child was seen while it was being stopped, or NULL. */
static const struct target *reaped_child(const fgprof_recorder *recorder)
{
    for (size_t i = 0; i < recorder->target_count; i++) {
        const struct target *target = &recorder->targets[i];
        if (target->process.pid == recorder->child && target->has_exit_status)
            return target;
    }
    return NULL;
}

pid_t fgprof_recorder_child(const fgprof_recorder *recorder)
{
    return reaped_child(recorder) ? 0 : recorder->child;
}

int fgprof_recorder_wait(fgprof_recorder *recorder, int *ret_status)
{
    if (!recorder->child)
        return -ECHILD;
    const struct target *target = reaped_child(recorder);
    if (target)
        *ret_status = target->exit_status;
    while (!target && waitpid(recorder->child, ret_status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    recorder->child = 0;
    return 0;
}

void fgprof_recorder_stop(fgprof_recorder *recorder)
{
    int saved_errno = errno;
    uint64_t one = 1;
    ssize_t written = write(recorder->stop_fd, &one, sizeof one);
    (void)written; /* full means that it was asked before */
    errno = saved_errno;
}

static int open_timer(const struct recording *recording)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    uint64_t first_ns = recording->start_ns + recording->period_ns;
    struct itimerspec ticks = {
        .it_interval = {.tv_sec = (time_t)(recording->period_ns / 1000000000u),
                        .tv_nsec = (long)(recording->period_ns % 1000000000u)},
        .it_value = {.tv_sec = (time_t)(first_ns / 1000000000u),
                     .tv_nsec = (long)(first_ns % 1000000000u)},
    };
    if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &ticks, NULL)) {
        int err = -errno;
        close(fd);
        return err;
    }
    return fd;
}

static bool any_pending(const struct fgprof_recorder *recorder)
{
    for (size_t i = 0; i < recorder->target_count; i++) {
        if (recorder->targets[i].is_pending)
            return true;
    }
    return false;
}

static bool all_exited(const struct fgprof_recorder *recorder)
{
    for (size_t i = 0; i < recorder->target_count; i++) {
        if (!recorder->targets[i].has_exited)
            return false;
    }
    return true;
}

static int continue_rounds(struct fgprof_recorder *recorder)
{
    int err = 0;
    for (size_t i = 0; i < recorder->target_count && !err; i++)
        err = target_continue_round(&recorder->targets[i]);
    return err;
}

/* Whether the duration has passed. */
static bool is_over(const struct fgprof_recorder *recorder)
{
    const struct recording *recording = &recorder->recording;
    uint64_t duration_ns = recorder->options.duration_ns;
    return duration_ns &&
           recording_tick_at(recording, monotonic_ns()) >= duration_ns / recording->period_ns;
}

/* Waits for the next tick, and meanwhile goes on with rounds that a thread holds up. Returns 1 for
 * a tick, 0 where it was asked to stop, or a negative errno. */
static int await_tick(struct fgprof_recorder *recorder, int timer_fd)
{
    for (;;) {
        struct pollfd files[] = {{.fd = timer_fd, .events = POLLIN},
                                 {.fd = recorder->stop_fd, .events = POLLIN}};
        struct timespec soon = {0, COLLECT_PERIOD_NS};
        int ready = ppoll(files, 2, any_pending(recorder) ? &soon : NULL, NULL);
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (files[1].revents)
            return 0;
        uint64_t expirations;
        if (files[0].revents && read(timer_fd, &expirations, sizeof expirations) > 0 &&
            (monotonic_ns() >= recorder->rest_until_ns || is_over(recorder)))
            return 1;
        int err = continue_rounds(recorder);
        if (err)
            return err;
    }
}

static void publish_progress(struct fgprof_recorder *recorder, uint64_t now_ns)
{
    const struct recording *recording = &recorder->recording;
    uint64_t due = recording_tick_at(recording, now_ns);
    struct fgprof_progress progress = {
        .elapsed_ns = now_ns - recording->start_ns,
        .duration_ns = recorder->options.duration_ns,
        .samples = recording->samples,
        .stacks = recording->stacks.stack_count,
        .ticks_late = due > recording->ticks_taken ? due - recording->ticks_taken : 0,
    };
    for (size_t i = 0; i < recorder->target_count; i++)
        progress.threads += recorder->targets[i].threads.count;
    pthread_mutex_lock(&recorder->lock);
    recorder->progress = progress;
    pthread_mutex_unlock(&recorder->lock);
}

static int take_tick(struct fgprof_recorder *recorder)
{
    int err = 0;
    uint64_t begin_ns = monotonic_ns();
    recorder->recording.ticks_taken++;
    /* First of all, who has stopped meanwhile is let go. */
    err = continue_rounds(recorder);
    for (size_t i = 0; i < recorder->target_count && !err; i++)
        err = target_begin_round(&recorder->targets[i]);
    if (!err)
        err = continue_rounds(recorder);
    uint64_t end_ns = monotonic_ns();
    recorder->rest_until_ns = end_ns + REST_FACTOR * (end_ns - begin_ns);
    publish_progress(recorder, end_ns);
    return err;
}

static int sample_until_end(struct fgprof_recorder *recorder, int timer_fd)
{
    int err = 0;
    for (size_t i = 0; i < recorder->target_count && !err; i++)
        err = target_start(&recorder->targets[i]);
    while (!err) {
        int ticked = await_tick(recorder, timer_fd);
        if (ticked <= 0)
            return ticked;
        err = take_tick(recorder);
        if (!err && all_exited(recorder))
            return 0;
        if (is_over(recorder))
            return 0;
    }
    return err;
}

/* Threads whose ticks are outstanding get a last round, and some time to stop; those that do not
 * come are let go when this thread ends, which is when the kernel detaches whom it traces
 * (exit_ptrace in ptrace.c). */
static int finish(struct fgprof_recorder *recorder)
{
    uint64_t begin_ns = monotonic_ns();
    int err = 0;
    for (size_t i = 0; i < recorder->target_count && !err; i++)
        err = target_begin_round(&recorder->targets[i]);
    if (!err)
        err = continue_rounds(recorder);
    while (!err && any_pending(recorder) && monotonic_ns() - begin_ns < FINISH_WAIT_NS) {
        struct timespec nap = {0, COLLECT_PERIOD_NS};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
        err = continue_rounds(recorder);
    }
    for (size_t i = 0; i < recorder->target_count && !err; i++)
        err = target_finish(&recorder->targets[i]);
    return err;
}

/* While a thread is stopped it waits for us: on a busy machine for as long as the scheduler lets us
 * wait for a CPU, which is milliseconds for an ordinary thread. Where we may, run first; the rest
 * after each round sees to it that others run too. */
static void run_before_others(void)
{
    struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest))
        setpriority(PRIO_PROCESS, 0, -20);
}

static void *sampler_thread(void *context)
{
    struct fgprof_recorder *recorder = context;
    struct recording *recording = &recorder->recording;
    prctl(PR_SET_NAME, "fgprof-sampler");
    prctl(PR_SET_TIMERSLACK, 1); /* ns: wake up when asked to (prctl(2)) */
    run_before_others();
    int timer_fd = open_timer(recording);
    int err = timer_fd < 0 ? timer_fd : sample_until_end(recorder, timer_fd);
    if (timer_fd >= 0)
        close(timer_fd);
    recording->end_ns = monotonic_ns();
    int finish_err = err ? 0 : finish(recorder);
    recording->error = err ? err : finish_err;
    pthread_mutex_lock(&recorder->lock);
    recorder->has_ended = true;
    pthread_cond_signal(&recorder->ended);
    pthread_mutex_unlock(&recorder->lock);
    return NULL;
}

/* Two files are kept open for each thread that is sampled. */
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
    int err = pthread_create(ret_thread, NULL, sampler_thread, recorder);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -err;
}

/* Calls the progress callback from time to time, until sampling has ended. In the caller's thread,
 * so that a slow terminal costs no tick. */
static void await_end(struct fgprof_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    while (!recorder->has_ended) {
        uint64_t until_ns = monotonic_ns() + PROGRESS_PERIOD_NS;
        struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
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

static void summarize(const struct recording *recording, struct fgprof_summary *summary)
{
    const struct histogram *pauses = &recording->pauses;
    summary->elapsed_ns = recording->end_ns - recording->start_ns;
    summary->ticks_planned = recording_tick_at(recording, recording->end_ns);
    summary->ticks_taken = recording->ticks_taken;
    if (summary->ticks_planned < summary->ticks_taken)
        summary->ticks_planned = summary->ticks_taken;
    summary->ticks_late = summary->ticks_planned - summary->ticks_taken;
    summary->threads_seen = recording->threads_seen;
    summary->samples = recording->samples;
    summary->samples_cut = recording->samples_cut;
    summary->samples_not_captured = recording->samples_not_captured;
    summary->samples_assumed = recording->samples_assumed;
    summary->stacks = recording->stacks.stack_count;
    summary->pauses = pauses->count;
    summary->pause_median_ns = histogram_quantile_ns(pauses, 500);
    summary->pause_p99_ns = histogram_quantile_ns(pauses, 990);
    summary->pause_max_ns = pauses->max_ns;
    if (recording->running_ns)
        summary->pause_share = (double)pauses->sum_ns / (double)recording->running_ns;
    summary->error = recording->error;
}

int fgprof_recorder_run(fgprof_recorder *recorder, fgprof_profile **ret_profile)
{
    pthread_t thread;
    struct recording *recording = &recorder->recording;
    if (recorder->has_run)
        return -EALREADY;
    if (!recorder->target_count && !recorder->child)
        return -ESRCH;
    recorder->has_run = true;
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    recording->start_time_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    recording->start_ns = recorder->spawned_ns ? recorder->spawned_ns : monotonic_ns();
    raise_file_limit(recording);
    int err = start_thread(recorder, &thread);
    if (err)
        return err;
    await_end(recorder);
    pthread_join(thread, NULL);
    struct fgprof_profile *profile;
    err = name_profile(&recording->stacks, &recording->spaces, &recording->thread_names, &profile);
    if (err)
        return err;
    profile->start_time_ns = recording->start_time_ns;
    profile->period_ns = recording->period_ns;
    summarize(recording, &profile->summary);
    *ret_profile = profile;
    return 0;
}
