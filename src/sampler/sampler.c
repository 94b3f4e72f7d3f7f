#include "sampler/sampler.h"
#include "sampler/children.h"
#include "sampler/rounds.h"
#include "base/clock.h"
#include "recorder/recorder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* After a round we rest for this many times as long as we were on a CPU for it: sampling a process
 * of very many threads takes no more than a third of one. Ticks in that time are late. */
#define REST_FACTOR 2
/* From a stop to our hearing of it, on a virtual machine where our CPU had nothing to do. */
#define HEARING_NS 30000
/* A wait for a tick that was shorter was none: the tick was due already. */
#define WAIT_MIN_NS 20000
/* How long who wants a copy waits for a moment at which no thread is being stopped. */
#define COPY_PATIENCE_NS 250000000

static int open_timer(const struct recording *recording)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    uint64_t first_ns = recording->start_ns + recording->period_ns;
    struct itimerspec ticks = {
        .it_interval = timespec_of_ns(recording->period_ns),
        .it_value = timespec_of_ns(first_ns),
    };
    if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &ticks, NULL)) {
        int err = -errno;
        close(fd);
        return err;
    }
    return fd;
}

/* A command's end is the end, whomever it has left behind. */
static bool all_exited(const struct fgprof_recorder *recorder)
{
    for (size_t i = 0; i < recorder->target_count; i++) {
        const struct target *target = recorder->targets[i];
        if (target->process.pid == recorder->child)
            return target->has_exited;
    }
    for (size_t i = 0; i < recorder->target_count; i++) {
        if (!recorder->targets[i]->has_exited)
            return false;
    }
    return true;
}

/* The kernel says so by SIGCHLD when a thread that we trace has stopped (ptrace(2)), which this
 * thread and the one that waits for it block: so a stop ends our wait at once, and the thread that
 * was stopped does not wait for us. Where another thread of the program takes the signal, the stop
 * is found a little later. Returns a descriptor or a negative errno. */
static int open_stop_signals(void)
{
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGCHLD);
    int fd = signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static void drain(int signal_fd)
{
    struct signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
    }
}

/* Whether the duration has passed. */
static bool is_over(const struct fgprof_recorder *recorder)
{
    const struct recording *recording = &recorder->recording;
    uint64_t duration_ns = recorder->options.duration_ns;
    return duration_ns &&
           recording_tick_at(recording, monotonic_ns()) >= duration_ns / recording->period_ns;
}

/* What the sampling thread waits for. */
enum { FILE_TIMER, FILE_STOP, FILE_SIGNAL, FILE_COUNT };

/* Waits for one of the files, for `timeout` at the most, and notes since when we are awake: threads
 * that wait for the CPU that we run on are not to be blamed for that. Returns 0 or a negative
 * errno.
 */
static int wait_for(struct recording *recording, struct pollfd files[FILE_COUNT],
                    const struct timespec *timeout)
{
    uint64_t begin_ns = monotonic_ns();
    int ready = ppoll(files, FILE_COUNT, timeout, NULL);
    int err = ready < 0 && errno != EINTR ? -errno : 0;
    uint64_t now_ns = monotonic_ns();
    if (now_ns - begin_ns >= WAIT_MIN_NS)
        recording->awake_ns = now_ns;
    return err;
}

static bool is_copy_wanted(struct fgprof_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    bool is_wanted = recorder->wants_copy;
    pthread_mutex_unlock(&recorder->lock);
    return is_wanted;
}

/* Makes the copy that another thread may wait for: after a round that looked at all, and where no
 * thread waits for us stopped, unless there is always one. */
static void serve_copy(struct fgprof_recorder *recorder, bool is_pending)
{
    bool has_patience = monotonic_ns() - recorder->round_for_copy_ns <= COPY_PATIENCE_NS;
    if (!recorder->recording.looks_at_all || (is_pending && has_patience))
        return;
    recorder->recording.looks_at_all = false;
    int err = so_far_update(&recorder->copy, &recorder->recording);
    pthread_mutex_lock(&recorder->lock);
    recorder->copy_error = err;
    recorder->wants_copy = false;
    pthread_cond_broadcast(&recorder->ended);
    pthread_mutex_unlock(&recorder->lock);
}

/* Waits for the next tick, and meanwhile goes on with rounds that a thread holds up. Returns 1 for
 * a tick, 0 where it was asked to stop, or a negative errno. */
static int await_tick(struct fgprof_recorder *recorder, int timer_fd, int signal_fd)
{
    for (;;) {
        bool is_pending = rounds_are_pending(recorder);
        serve_copy(recorder, is_pending);
        struct pollfd files[FILE_COUNT] = {
            [FILE_TIMER] = {.fd = timer_fd, .events = POLLIN},
            [FILE_STOP] = {.fd = recorder->stop_fd, .events = POLLIN},
            [FILE_SIGNAL] = {.fd = is_pending ? signal_fd : -1, .events = POLLIN},
        };
        struct timespec soon = {0, ROUNDS_LOOK_PERIOD_NS};
        uint64_t awake_before_ns = recorder->recording.awake_ns;
        int err = wait_for(&recorder->recording, files, is_pending ? &soon : NULL);
        if (err)
            return err;
        if (files[FILE_STOP].revents)
            return 0;
        /* Where it was there before we waited, it is not known since when. */
        if (files[FILE_SIGNAL].revents && recorder->recording.awake_ns != awake_before_ns)
            recorder->recording.stop_heard_ns = recorder->recording.awake_ns - HEARING_NS;
        if (files[FILE_SIGNAL].revents)
            drain(signal_fd);
        uint64_t expirations;
        if (files[FILE_TIMER].revents && read(timer_fd, &expirations, sizeof expirations) > 0 &&
            (monotonic_ns() >= recorder->rest_until_ns || is_over(recorder)))
            return 1;
        err = rounds_continue(recorder);
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
        progress.threads += recorder->targets[i]->threads.count;
    pthread_mutex_lock(&recorder->lock);
    recorder->progress = progress;
    pthread_mutex_unlock(&recorder->lock);
}

static int take_tick(struct fgprof_recorder *recorder)
{
    int err = 0;
    uint64_t begin_ns = monotonic_ns(), begin_cpu_ns = thread_cpu_ns();
    recorder->recording.ticks_taken++;
    if (!recorder->recording.looks_at_all && is_copy_wanted(recorder)) {
        recorder->recording.looks_at_all = true;
        recorder->round_for_copy_ns = begin_ns;
    }
    /* First of all, who has stopped meanwhile is let go. */
    err = rounds_continue(recorder);
    if (!err)
        err = children_find(recorder);
    if (!err)
        err = rounds_begin(recorder);
    if (!err)
        err = rounds_continue(recorder);
    children_close_exited(recorder);
    uint64_t end_ns = monotonic_ns();
    recorder->rest_until_ns = end_ns + REST_FACTOR * (thread_cpu_ns() - begin_cpu_ns);
    publish_progress(recorder, end_ns);
    return err;
}

static int sample_until_end(struct fgprof_recorder *recorder, int timer_fd, int signal_fd)
{
    int err = 0;
    for (size_t i = 0; i < recorder->target_count && !err; i++)
        err = target_start(recorder->targets[i]);
    if (!err)
        err = children_start(recorder);
    /* The round at the end is all that a dump takes. */
    if (recorder->recording.waits)
        return err;
    while (!err) {
        int ticked = await_tick(recorder, timer_fd, signal_fd);
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

void *sampler_main(void *context)
{
    struct fgprof_recorder *recorder = context;
    struct recording *recording = &recorder->recording;
    prctl(PR_SET_NAME, "fgprof-sampler");
    prctl(PR_SET_TIMERSLACK, 1); /* ns: wake up when asked to (prctl(2)) */
    int timer_fd = open_timer(recording), signal_fd = open_stop_signals();
    recording->awake_ns = monotonic_ns();
    int err = timer_fd < 0 ? timer_fd : signal_fd < 0 ? signal_fd : 0;
    if (!err)
        err = sample_until_end(recorder, timer_fd, signal_fd);
    if (timer_fd >= 0)
        close(timer_fd);
    if (signal_fd >= 0)
        close(signal_fd);
    recording->end_ns = monotonic_ns();
    int finish_err = err ? 0 : rounds_finish(recorder);
    reaper_forget_all(recording->reaper);
    recording->error = err ? err : finish_err;
    pthread_mutex_lock(&recorder->lock);
    recorder->has_ended = true;
    pthread_cond_broadcast(&recorder->ended);
    pthread_mutex_unlock(&recorder->lock);
    return NULL;
}
