#include "cli/serve/session.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/run_recorder.h"
#include "cli/say.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define LOOKS_FOR_PROCESSES_EVERY_NS 500000000u
#define RETRIES_AFTER_NS 5000000000u

int session_init(struct session *session, const struct cli_options *options,
                 session_begins_fn *begins, void *context)
{
    *session = (struct session){.options = options, .begins = begins, .context = context};
    session->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (session->ended_fd < 0)
        return -errno;
    pthread_mutex_init(&session->lock, NULL);
    pthread_mutex_init(&session->dumping, NULL);
    pthread_cond_init(&session->changed, NULL);
    return 0;
}

void session_destroy(struct session *session)
{
    pthread_cond_destroy(&session->changed);
    pthread_mutex_destroy(&session->dumping);
    pthread_mutex_destroy(&session->lock);
    close(session->ended_fd);
}

void session_stop(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    session->is_stopping = true;
    if (session->beginning)
        fgprof_recorder_stop(session->beginning);
    eventfd_write(session->ended_fd, 1);
    pthread_mutex_unlock(&session->lock);
}

/* From now on requests may use the recorder. */
static void publish(struct session *session)
{
    eventfd_t count;
    pthread_mutex_lock(&session->lock);
    session->recorder = session->beginning;
    session->number++;
    if (!session->is_stopping)
        eventfd_read(session->ended_fd, &count);
    pthread_mutex_unlock(&session->lock);
    session->begins(session, session->context);
}

/* Called while the recorder samples, a few times a second. */
static void on_progress(const struct fgprof_progress *progress, void *context)
{
    struct session *session = context;
    pthread_mutex_lock(&session->lock);
    session->progress = *progress;
    bool is_first = !session->recorder;
    pthread_mutex_unlock(&session->lock);
    if (is_first)
        publish(session);
}

uint64_t session_keep_ns(const struct session *session)
{
    const struct cli_options *options = session->options;
    /* Sampling starts with the only request: all of it is kept. */
    if (session->is_for_one)
        return options->seconds_max * 1000000000u;
    return options->keep_ns ? options->keep_ns : KEEP_DEFAULT_NS;
}

static int attach(fgprof_recorder *recorder, pid_t pid)
{
    const struct timespec pause = {.tv_nsec = SESSION_PAUSE_NS};
    int err = fgprof_recorder_attach(recorder, pid);
    for (unsigned i = 0; err == -EBUSY && i < SESSION_TRIES_MAX; i++) {
        nanosleep(&pause, NULL);
        err = fgprof_recorder_attach(recorder, pid);
    }
    return err;
}

int session_second_recorder(const struct selected_pids *targets, fgprof_options *options,
                            fgprof_recorder **ret_recorder)
{
    fgprof_recorder *recorder;
    size_t attached = 0;
    int err = options ? fgprof_recorder_new(options, &recorder) : -ENOMEM;
    fgprof_options_free(options);
    if (err)
        return err;
    for (size_t i = 0; i < targets->count; i++)
        attached += attach(recorder, targets->pids[i]) == 0;
    if (!attached) {
        fgprof_recorder_free(recorder);
        return -ESRCH;
    }
    *ret_recorder = recorder;
    return 0;
}

void session_describe(const struct session *session, char text[SESSION_TEXT_BYTES])
{
    size_t others = session->targets.count - 1;
    int length =
        snprintf(text, SESSION_TEXT_BYTES, "%s (%d)", session->name, (int)session->targets.pids[0]);
    if (others)
        snprintf(text + length, SESSION_TEXT_BYTES - (size_t)length, " and %zu %s", others,
                 others == 1 ? "other" : "others");
}

int session_take(struct session *session, fgprof_recorder **ret_recorder)
{
    pthread_mutex_lock(&session->lock);
    int err = session->is_stopping || !session->recorder ? -ESRCH
              : session->users >= SESSION_USERS_MAX      ? -EBUSY
                                                         : 0;
    *ret_recorder = session->recorder;
    session->users += !err;
    pthread_mutex_unlock(&session->lock);
    return err;
}

void session_give_back(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    session->users--;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

enum session_wait session_wait(struct session *session, uint64_t wait_ns, int client_fd)
{
    enum { CLIENT, ENDED };
    struct pollfd waits[] = {
        [CLIENT] = {.fd = client_fd, .events = POLLRDHUP},
        [ENDED] = {.fd = session->ended_fd, .events = POLLIN},
    };
    uint64_t end_ns = monotonic_ns() + wait_ns;
    for (uint64_t now = monotonic_ns(); now < end_ns; now = monotonic_ns()) {
        uint64_t left_ms = (end_ns - now + 999999) / 1000000;
        if (poll(waits, sizeof waits / sizeof *waits, (int)left_ms) < 0 && errno != EINTR)
            break;
        if (waits[CLIENT].revents & (POLLRDHUP | POLLHUP | POLLERR))
            return SESSION_CLIENT_GONE;
        if (waits[ENDED].revents)
            return SESSION_ENDED;
    }
    return SESSION_WAITED;
}

void session_wait_for_end(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    while (session->beginning)
        pthread_cond_wait(&session->changed, &session->lock);
    pthread_mutex_unlock(&session->lock);
}

static void add_up(struct fgprof_progress *all, const struct fgprof_progress *one)
{
    all->ticks += one->ticks;
    all->ticks_late += one->ticks_late;
    all->samples += one->samples;
    all->samples_lost += one->samples_lost;
    all->deadlocks += one->deadlocks;
    all->samples_not_kept += one->samples_not_kept;
    all->processes_joined += one->processes_joined;
}

/* Waits for those that still use it. Their waits are over, so that is soon. */
static void withdraw(struct session *session)
{
    eventfd_write(session->ended_fd, 1);
    pthread_mutex_lock(&session->lock);
    session->recorder = session->beginning = NULL;
    pthread_cond_broadcast(&session->changed);
    while (session->users)
        pthread_cond_wait(&session->changed, &session->lock);
    free(session->targets.pids);
    session->targets = (struct selected_pids){0};
    add_up(&session->before, &session->progress);
    session->progress = (struct fgprof_progress){0};
    pthread_mutex_unlock(&session->lock);
}

static bool must_stop(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    bool must = session->is_stopping;
    pthread_mutex_unlock(&session->lock);
    return must;
}

/* Unless the server ends before. */
static void pause_for(struct session *session, uint64_t wait_ns)
{
    const struct timespec pause = {.tv_nsec = LOOKS_FOR_PROCESSES_EVERY_NS};
    for (uint64_t end_ns = monotonic_ns() + wait_ns;
         monotonic_ns() < end_ns && !must_stop(session);)
        nanosleep(&pause, NULL);
}

/* Waits until a process has the name, or the server ends. */
static void wait_for_process(struct session *session)
{
    pid_t *pids;
    size_t count = 0;
    while (!count && !must_stop(session)) {
        int err = find_by_name(session->options->pgrep, &pids, &count);
        if (err)
            return;
        free(pids);
        if (!count)
            pause_for(session, LOOKS_FOR_PROCESSES_EVERY_NS);
    }
}

/* The server may have been asked to end meanwhile. */
static void begin(struct session *session, fgprof_recorder *recorder)
{
    pthread_mutex_lock(&session->lock);
    session->beginning = recorder;
    if (session->is_stopping)
        fgprof_recorder_stop(recorder);
    pthread_mutex_unlock(&session->lock);
}

/* Samples to the end. */
static int run(struct session *session, fgprof_recorder *recorder)
{
    struct fgprof_summary summary;
    fgprof_profile *profile;
    int err = fgprof_recorder_run(recorder, &profile);
    if (err)
        return err;
    fgprof_profile_summary(profile, &summary, sizeof summary);
    eventfd_write(session->ended_fd, 1);
    if (session->ends && !summary.error)
        session->ends(session, profile, must_stop(session), session->ends_context);
    fgprof_profile_free(profile);
    return summary.error;
}

/* Samples the processes that there are now, to their end. Returns whether it could. */
static bool sample(struct session *session, const fgprof_options *library)
{
    fgprof_recorder *recorder = new_recorder(session->options, library);
    bool ok = recorder && select_pids_listed(session->options, recorder, &session->targets);
    if (ok) {
        fgprof_process_name(session->targets.pids[0], session->name, sizeof session->name);
        begin(session, recorder);
        int err = run(session, recorder);
        if (err)
            say("sampling failed: %s", strerror(-err));
        ok = !err;
    }
    withdraw(session);
    fgprof_recorder_free(recorder);
    return ok;
}

int session_run(struct session *session)
{
    const struct cli_options *options = session->options;
    fgprof_options *library = options_for_library(options);
    if (!library) {
        say("out of memory");
        return EXIT_NOT_WRITTEN;
    }
    fgprof_options_set_progress(library, on_progress, session);
    fgprof_options_add_objects(library, FGPROF_KIND_HEAP);
    fgprof_options_add_objects(library, FGPROF_KIND_THREADCREATE);
    /* Without --keep, profiles of the whole time since the start are still possible, like Go's
     * block profile: agents subtract one from the next. */
    fgprof_options_set_keep(library, session_keep_ns(session), options->keep_mib << 20);
    fgprof_options_set_keep_stacks(library, !options->keep_ns);
    bool ok;
    do {
        if (options->waits_for_processes)
            wait_for_process(session);
        ok = must_stop(session) || sample(session, library);
        /* It may have ended already, or not be permitted yet. */
        if (!ok && options->waits_for_processes)
            pause_for(session, RETRIES_AFTER_NS);
    } while (options->waits_for_processes && !must_stop(session));
    fgprof_options_free(library);
    return ok || options->waits_for_processes ? EXIT_WRITTEN : EXIT_NOT_WRITTEN;
}
