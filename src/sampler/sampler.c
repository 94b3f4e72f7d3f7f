#include "sampler/sampler.h"
#include "base/clock.h"
#include "sampler/goroutines.h"
#include "sampler/kernel_samples.h"
#include "sampler/off_cpu_samples.h"
#include "sampler/processes.h"
#include "sampler/report.h"
#include "sampler/rounds.h"
#include "sampler/short_sleeps.h"
#include "sampler/stops.h"
#include "sampler/switch_events.h"
#include "sampler/taken_cpu.h"
#include "sampler/visits.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* After long rounds the thread rests for this many times its CPU time, so that sampling a process
 * of very many threads takes at most a third of a CPU. Ticks in that time are late. */
#define REST_FACTOR 2
/* The time from a stop until we hear of it, on a virtual machine where our CPU was idle. */
#define HEARING_NS 30000
/* A shorter wait does not count: the tick was already due. */
#define WAIT_MIN_NS 20000
/* How long a copy or a moment may wait until all threads were looked at and no stop is pending. */
#define SWEEP_PATIENCE_NS 250000000

/* State that the sampling thread needs only while it runs. */
struct loop {
    int signal_fd;
    bool has_long_rounds;    /* the last round took longer than allowed without a rest */
    uint64_t rest_until_ns;  /* no tick is taken before this */
    uint64_t sweep_ns;       /* when the last round that looks at all threads began */
    uint64_t next_moment_ns; /* when the next moment must be noted */
};

/* 32 bits, so that users can retype it. */
static uint64_t random_seed(void)
{
    uint32_t seed;
    ssize_t bytes = getrandom(&seed, sizeof seed, 0);
    return bytes == (ssize_t)sizeof seed ? seed : (uint32_t)wall_ns();
}

static int new_collector(struct sampler *sampler)
{
    const struct sampler_options *options = sampler->options;
    const struct collector_options wanted = {.objects = options->objects,
                                             .seed = sampler->clock.ticks.seed,
                                             .has_children = options->has_children,
                                             .is_dump = options->is_dump,
                                             .is_endless = options->moment_every_ns};
    bool are_wanted = false;
    for (unsigned kind = 0; kind < OBJECT_KIND_COUNT; kind++)
        are_wanted |= options->objects.kinds[kind];
    return are_wanted ? collector_new(&wanted, channel_news(sampler->channel), &sampler->collector)
                      : 0;
}

int sampler_init(struct sampler *sampler, const struct sampler_options *options,
                 struct channel *channel)
{
    *sampler = (struct sampler){.options = options, .channel = channel};
    sampler->clock.ticks.period_ns = options->period_ns;
    sampler->clock.ticks.seed = options->has_seed ? options->seed : random_seed();
    int err = ptrace_source_new(&sampler->watches, &sampler->stopped);
    if (!err)
        err = switches_new(&sampler->switches);
    /* Fail before anything is sampled or spawned. */
    if (!err && options->capture == CAPTURE_KERNEL)
        err = kernel_samples_begin(sampler);
    if (!err && options->capture == CAPTURE_RECORD)
        err = off_cpu_samples_begin(sampler);
    return err ? err : new_collector(sampler);
}

static int renew_collector(struct sampler *sampler)
{
    collector_free(sampler->collector);
    sampler->collector = NULL;
    int err = new_collector(sampler);
    for (size_t i = 0; i < sampler->process_count && !err; i++)
        err = report_process_to_collector(sampler, sampler->processes[i]);
    return err;
}

int sampler_prepare(struct sampler *sampler)
{
    bool is_needed = !sampler->options->is_dump && !sampler->options->has_no_time;
    int err = is_needed ? kernel_samples_begin(sampler) : 0;
    if (!err)
        err = off_cpu_samples_begin(sampler);
    /* Only now is it known whether this is a dump, which needs other options. */
    if (!err && sampler->options->is_dump)
        err = renew_collector(sampler);
    return err || !sampler->collector ? err : collector_prepare(sampler->collector);
}

void sampler_free(struct sampler *sampler)
{
    kernel_samples_end(sampler);
    collector_free(sampler->collector);
    off_cpu_samples_end(sampler);
    taken_cpu_free(&sampler->visits);
    processes_free(sampler);
    numbers_free(&sampler->numbers);
    ptrace_source_free(sampler->stopped);
    switch_events_end(sampler);
    watches_free(&sampler->watches);
    cpu_limits_free(&sampler->cpu_limits);
}

void sampler_stop(struct sampler *sampler)
{
    atomic_store(&sampler->is_to_stop, true);
    channel_end_wait(sampler->channel);
}

/* The kernel sends SIGCHLD when a thread that we trace has stopped (ptrace(2)). This thread and the
 * thread that waits for it block that signal, so that a stop ends our wait immediately and the
 * stopped thread does not wait for us. If another thread of the program takes the signal, the stop
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

/* When the duration will have passed. */
static uint64_t over_ns(const struct sampler *sampler)
{
    uint64_t duration_ns = sampler->options->duration_ns, start_ns = sampler->clock.ticks.start_ns;
    bool ends = duration_ns && duration_ns < UINT64_MAX - start_ns;
    return ends ? start_ns + duration_ns : UINT64_MAX;
}

/* When to take the next tick: when it is due, or later if we rest until then. */
static uint64_t next_tick_ns(const struct sampler *sampler, const struct loop *loop)
{
    uint64_t due_ns = ticks_due_ns(&sampler->clock.ticks, sampler->counts.ticks_planned);
    return due_ns > loop->rest_until_ns ? due_ns : loop->rest_until_ns;
}

/* Whether to take a tick now. Even the shortest recording takes one. */
static bool has_tick(const struct sampler *sampler, const struct loop *loop, uint64_t now_ns)
{
    if (now_ns >= over_ns(sampler))
        return !sampler->counts.ticks_taken;
    return now_ns >= next_tick_ns(sampler, loop);
}

/* Waits until a thread has stopped. */
static bool await_stop(const struct loop *loop, uint64_t for_ns)
{
    struct pollfd file = {.fd = loop->signal_fd, .events = POLLIN};
    const struct timespec timeout = timespec_of_ns(for_ns);
    bool has_stopped = ppoll(&file, 1, &timeout, NULL) > 0;
    if (has_stopped)
        drain(loop->signal_fd);
    return has_stopped;
}

/* Waits until then, or until a request comes or a thread stops, or less if there is something to do
 * soon. Notes since when we are awake: threads that have waited for our CPU since then do so
 * because of us. */
static void wait_until(struct sampler *sampler, const struct loop *loop, uint64_t until_ns)
{
    uint64_t begin_ns = monotonic_ns();
    bool is_pending = stops_are_pending(sampler), has_stopped = false;
    bool is_soon = is_pending || sampler->awaits_objects;
    if (is_soon && until_ns > begin_ns + ROUNDS_LOOK_PERIOD_NS)
        until_ns = begin_ns + ROUNDS_LOOK_PERIOD_NS;
    if (begin_ns >= until_ns)
        return;
    if (is_pending)
        has_stopped = await_stop(loop, until_ns - begin_ns);
    else
        channel_await(sampler->channel, sampler->heard, until_ns);
    uint64_t now_ns = monotonic_ns();
    if (now_ns - begin_ns < WAIT_MIN_NS)
        return;
    sampler->clock.awake_ns = now_ns;
    taken_cpu_note_awake(sampler);
    /* If the signal came before we waited, the time of the stop is not known. */
    if (has_stopped)
        sampler->stop_heard_ns = now_ns - HEARING_NS;
}

/* Sends a message with the state of sampling so far, to be taken after this many of the collector's
 * messages. Returns 0 or -ENOMEM. */
static int send_state(struct sampler *sampler, enum message_kind kind, uint64_t after)
{
    struct message message = {.kind = kind, .after = after, .state = malloc(sizeof *message.state)};
    int err = 0;
    if (!message.state)
        return -ENOMEM;
    for (size_t i = 0; i < sampler->process_count && !err; i++)
        err = goroutines_report(sampler, sampler->processes[i]);
    if (err) {
        free(message.state);
        return err;
    }
    sampler->counts.cpu_losses = cpu_limits_read(&sampler->cpu_limits);
    message.state->counts = sampler->counts;
    message.state->now_ns = clock_now_ns(&sampler->clock);
    err = channel_send(sampler->channel, &message);
    if (err)
        free(message.state);
    channel_ring(sampler->channel);
    return err;
}

static bool wants_moment(struct sampler *sampler, const struct loop *loop, uint64_t now_ns)
{
    return (sampler->options->moment_every_ns && now_ns >= loop->next_moment_ns) ||
           atomic_load(&sampler->progress.wants_moment);
}

/* Whether the collector has sent everything that belongs in a copy. Requests that if it was not
 * requested yet. */
static bool has_objects(struct sampler *sampler, uint64_t *ret_after, int *ret_err)
{
    *ret_after = 0;
    *ret_err = 0;
    if (!sampler->collector)
        return true;
    if (!sampler->awaits_objects)
        *ret_err = report_to_collector(sampler, (struct notice){.kind = NOTICE_COPY});
    sampler->awaits_objects = !*ret_err && !collector_has_told(sampler->collector, ret_after);
    return !*ret_err && !sampler->awaits_objects;
}

/* After rounds that looked at all threads: requests the copy for which another thread waits from
 * the worker, and asks it to note a moment that is due. No stop may be pending then, unless one
 * always is. Returns 0 or -ENOMEM. */
static int end_sweep(struct sampler *sampler, struct loop *loop)
{
    uint64_t now_ns = monotonic_ns();
    bool has_patience = now_ns - loop->sweep_ns <= SWEEP_PATIENCE_NS;
    bool is_unfinished = stops_are_pending(sampler) || rounds_have_looks_left(sampler);
    bool wants_copy = atomic_load(&sampler->progress.wants_copy);
    uint64_t after = 0;
    int err = 0;
    if (!sampler->looks_at_all || (is_unfinished && has_patience))
        return 0;
    if (wants_copy && !has_objects(sampler, &after, &err))
        return err;
    sampler->looks_at_all = false;
    if (wants_moment(sampler, loop, now_ns)) {
        atomic_store(&sampler->progress.wants_moment, false);
        loop->next_moment_ns = now_ns + sampler->options->moment_every_ns;
        err = send_state(sampler, MESSAGE_MOMENT, 0);
    }
    if (!err && wants_copy && atomic_exchange(&sampler->progress.wants_copy, false))
        err = send_state(sampler, MESSAGE_COPY, after);
    return err;
}

/* Notes which ticks are due by now. If there are several, the one that is taken represents all. */
static void plan_ticks(struct sampler *sampler, uint64_t now_ns)
{
    uint64_t due = ticks_until(&sampler->clock.ticks, now_ns);
    sampler->counts.ticks_planned = sampling_ticks_planned(&sampler->counts, due);
    if (sampler->counts.ticks_planned == sampler->counts.ticks_taken)
        sampler->counts.ticks_planned++;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Waits for the next tick. Meanwhile continues rounds that wait for a thread, and serves the
 * worker's requests. Returns 1 for a tick, 0 if the duration has passed or we were asked to end, or
 * a negative errno. */
static int await_tick(struct sampler *sampler, struct loop *loop)
{
    for (;;) {
        int err = end_sweep(sampler, loop);
        if (err)
            return err;
        err = off_cpu_samples_continue(sampler);
        if (err)
            return err;
        uint64_t until_ns = lesser(next_tick_ns(sampler, loop), over_ns(sampler));
        uint64_t wake_ns = lesser(until_ns, short_sleeps_begin(sampler, until_ns));
        wait_until(sampler, loop, lesser(wake_ns, visits_plan(sampler, until_ns)));
        if (atomic_load(&sampler->is_to_stop))
            return 0;
        uint64_t now_ns = monotonic_ns();
        if (has_tick(sampler, loop, now_ns)) {
            plan_ticks(sampler, now_ns);
            return 1;
        }
        if (now_ns >= over_ns(sampler))
            return 0;
        visits_take(sampler, now_ns);
        err = rounds_continue(sampler);
        if (err)
            return err;
    }
}

static void publish_progress(struct sampler *sampler, uint64_t now_ns)
{
    struct sampler_progress *progress = &sampler->progress;
    const struct sampling_counts *counts = &sampler->counts;
    uint64_t planned =
        sampling_ticks_planned(counts, ticks_period_at(&sampler->clock.ticks, now_ns));
    uint64_t threads = 0;
    for (size_t i = 0; i < sampler->process_count; i++)
        threads += sampler->processes[i]->threads.count;
    atomic_store(&progress->elapsed_ns, now_ns - sampler->clock.ticks.start_ns);
    atomic_store(&progress->ticks_late, planned - counts->ticks_taken);
    atomic_store(&progress->threads, threads);
    atomic_store(&progress->ticks, counts->ticks_taken);
    atomic_store(&progress->samples_lost,
                 counts->kernel_samples_lost + counts->kernel_samples_dropped);
}

static int take_tick(struct sampler *sampler, struct loop *loop)
{
    uint64_t begin_ns = monotonic_ns();
    uint64_t begin_cpu_ns = loop->has_long_rounds ? thread_cpu_ns() : 0;
    sampler->counts.ticks_taken++;
    visits_end(sampler);
    if (!sampler->looks_at_all &&
        (atomic_load(&sampler->progress.wants_copy) || wants_moment(sampler, loop, begin_ns))) {
        sampler->looks_at_all = true;
        rounds_sweep(sampler);
        loop->sweep_ns = begin_ns;
    }
    /* First release threads that have stopped meanwhile. */
    int err = stops_are_pending(sampler) ? stops_continue(sampler) : 0;
    if (!err)
        err = rounds_begin(sampler);
    if (!err)
        err = rounds_continue(sampler);
    processes_drop_exited(sampler);
    uint64_t end_ns = monotonic_ns();
    if (loop->has_long_rounds)
        loop->rest_until_ns = end_ns + REST_FACTOR * (thread_cpu_ns() - begin_cpu_ns);
    loop->has_long_rounds =
        (end_ns - begin_ns) * (1 + REST_FACTOR) > sampler->clock.ticks.period_ns;
    publish_progress(sampler, end_ns);
    return err;
}

static int sample_until_end(struct sampler *sampler, struct loop *loop)
{
    /* A dump opens its own events, if it needs any. */
    if (sampler->options->is_dump)
        kernel_samples_end(sampler);
    int err = processes_start(sampler);
    channel_ring(sampler->channel);
    /* A dump consists of the round at the end. */
    if (sampler->options->is_dump)
        return err;
    while (!err) {
        int ticked = await_tick(sampler, loop);
        if (ticked <= 0)
            return ticked;
        err = take_tick(sampler, loop);
        if (!err && processes_all_exited(sampler))
            return 0;
    }
    return err;
}

int sampler_run(struct sampler *sampler)
{
    prctl(PR_SET_NAME, "fgprof-sampler");
    prctl(PR_SET_TIMERSLACK, 1); /* in ns: wake up on time (prctl(2)) */
    struct loop loop = {.signal_fd = open_stop_signals(),
                        .next_moment_ns =
                            sampler->clock.ticks.start_ns + sampler->options->moment_every_ns};
    sampler->clock.awake_ns = monotonic_ns();
    off_cpu_samples_start(sampler);
    taken_cpu_begin(sampler);
    int err = loop.signal_fd < 0 ? loop.signal_fd : sample_until_end(sampler, &loop);
    if (loop.signal_fd >= 0)
        close(loop.signal_fd);
    sampler->clock.end_ns = monotonic_ns();
    sampler->counts.cpu_losses = cpu_limits_read(&sampler->cpu_limits);
    visits_end(sampler);
    int finish_err = err ? 0 : rounds_finish(sampler);
    kernel_samples_end(sampler);
    off_cpu_samples_end(sampler);
    ptrace_source_give_up(sampler->stopped);
    const struct message message = {.kind = MESSAGE_END};
    /* The collector, if there is one, sends the end to the worker. */
    report_to_collector(sampler, (struct notice){.kind = NOTICE_END});
    int send_err = sampler->collector ? 0 : channel_send(sampler->channel, &message);
    channel_close(sampler->channel);
    return err ? err : finish_err ? finish_err : send_err;
}
