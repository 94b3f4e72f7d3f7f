#include "cli/push/push.h"
#include "base/clock.h"
#include "cli/push/post.h"
#include "cli/push/sender.h"

#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_DEFAULT_NS 10000000000u
#define END_WAIT_NS 5000000000u

struct pusher {
    const struct push_options *options;
    struct session *session;
    uint64_t every_ns;
    unsigned kinds;
    struct spool spool;
    struct sender senders[PUSH_TARGETS_MAX];
    size_t sender_count;
    pthread_t thread;
    sem_t begun; /* posted when processes begin to be sampled, and at the end */
    atomic_bool is_ending;
    bool has_said_failure;
};

static void say_failure(struct pusher *pusher, int err)
{
    if (!pusher->has_said_failure)
        fprintf(stderr, "fgprof-c: a profile to push can't be made: %s (reported once)\n",
                strerror(-err));
    pusher->has_said_failure = true;
}

/* Gives the part to the spool, as each server wants it. */
static void spread(struct pusher *pusher, const struct pushed *pushed)
{
    for (size_t i = 0; i < pusher->options->target_count; i++) {
        struct bodies bodies;
        int err = bodies_make(pushed, pusher->options->targets[i].api, &bodies);
        for (size_t j = 0; j < bodies.count; j++)
            spool_add(&pusher->spool, i, &bodies.items[j]);
        if (!err)
            continue;
        spool_count_lost(&pusher->spool, i);
        say_failure(pusher, err);
    }
}

static void push_part(struct pusher *pusher, fgprof_profile *profile, const struct labels *labels,
                      uint64_t from_ns, uint64_t until_ns)
{
    struct fgprof_summary summary;
    const struct pushed pushed = {
        .profile = profile,
        .kinds = pusher->kinds,
        .labels = labels,
        .from = (time_t)(from_ns / 1000000000u),
        .until = (time_t)(until_ns / 1000000000u),
    };
    fgprof_profile_summary(profile, &summary, sizeof summary);
    if (summary.samples)
        spread(pusher, &pushed);
}

/* Pushes at each multiple of the time between pushes, as Pyroscope's own agents do, and what is
 * left when the processes have ended. */
static void push_all(struct pusher *pusher, fgprof_recorder *recorder)
{
    const struct session *session = pusher->session;
    fgprof_moment *moment = NULL;
    enum session_wait waited;
    struct labels labels;
    labels_make(pusher->options, session->targets.pids[0], session->name,
                session->targets.count > 1 || session->options->has_children, &labels);
    uint64_t from_ns = wall_ns();
    do {
        fgprof_profile *profile;
        uint64_t passed_ns = wall_ns() % pusher->every_ns;
        waited = session_wait(pusher->session, pusher->every_ns - passed_ns, -1);
        if (waited == SESSION_ENDED)
            session_wait_for_end(pusher->session);
        uint64_t until_ns = wall_ns();
        int err = fgprof_recorder_profile_next(recorder, &moment, &profile);
        if (err) {
            say_failure(pusher, err);
            continue;
        }
        /* The clock may have been set back. */
        push_part(pusher, profile, &labels, from_ns < until_ns ? from_ns : until_ns, until_ns);
        fgprof_profile_free(profile);
        from_ns = until_ns;
    } while (waited == SESSION_WAITED);
    fgprof_moment_free(moment);
}

static void *run(void *context)
{
    struct pusher *pusher = context;
    fgprof_recorder *recorder;
    for (;;) {
        while (sem_wait(&pusher->begun) && errno == EINTR)
            ;
        if (atomic_load(&pusher->is_ending))
            return NULL;
        /* They may have ended already. */
        if (session_take(pusher->session, &recorder))
            continue;
        push_all(pusher, recorder);
        session_give_back(pusher->session);
    }
}

static bool is_usable(const struct push_options *options)
{
    struct credentials credentials;
    const char *problem = credentials_read(options, &credentials);
    credentials_forget(&credentials);
    if (problem)
        fprintf(stderr, "fgprof-c: the token, password or header to push with can't be used: %s\n",
                problem);
    else if (!post_load())
        fprintf(stderr, "fgprof-c: can't push: libcurl is not installed (Debian: libcurl4)\n");
    else
        return true;
    return false;
}

static int start_threads(struct pusher *pusher)
{
    int err = 0;
    for (size_t i = 0; i < pusher->options->target_count && !err; i++) {
        err = sender_start(&pusher->senders[i], &pusher->spool, i, pusher->every_ns);
        pusher->sender_count += !err;
    }
    return err ? err : -pthread_create(&pusher->thread, NULL, run, pusher);
}

static void stop_senders(struct pusher *pusher)
{
    uint64_t deadline_ns = monotonic_ns() + END_WAIT_NS;
    spool_end(&pusher->spool);
    for (size_t i = 0; i < pusher->sender_count; i++)
        atomic_store(&pusher->senders[i].deadline_ns, deadline_ns);
    for (size_t i = 0; i < pusher->sender_count; i++)
        sender_stop(&pusher->senders[i], deadline_ns);
}

struct pusher *pusher_start(const struct cli_options *options, struct session *session)
{
    const struct push_options *push = &options->push;
    struct pusher *pusher = is_usable(push) ? calloc(1, sizeof *pusher) : NULL;
    if (!pusher)
        return NULL;
    pusher->options = push;
    pusher->session = session;
    pusher->every_ns = push->every_ns ? push->every_ns : EVERY_DEFAULT_NS;
    pusher->kinds = push->kinds ? push->kinds : PUSH_KINDS_DEFAULT;
    sem_init(&pusher->begun, 0, 0);
    if (!spool_open(&pusher->spool, push)) {
        free(pusher);
        return NULL;
    }
    int err = start_threads(pusher);
    if (!err)
        return pusher;
    fprintf(stderr, "fgprof-c: can't push: %s\n", strerror(-err));
    stop_senders(pusher);
    spool_close(&pusher->spool);
    free(pusher);
    return NULL;
}

void pusher_begin(struct pusher *pusher)
{
    sem_post(&pusher->begun);
}

void pusher_describe(const struct pusher *pusher)
{
    fprintf(stderr, "fgprof-c: pushing every %g s to", (double)pusher->every_ns / 1e9);
    for (size_t i = 0; i < pusher->options->target_count; i++)
        fprintf(stderr, "%s %s", i ? "," : "", pusher->options->targets[i].url);
    fprintf(stderr, ", spool in %s\n", pusher->spool.path);
}

void pusher_stop(struct pusher *pusher)
{
    atomic_store(&pusher->is_ending, true);
    sem_post(&pusher->begun);
    pthread_join(pusher->thread, NULL);
    stop_senders(pusher);
    spool_close(&pusher->spool);
    sem_destroy(&pusher->begun);
    free(pusher);
}

static void put(int fd, const char *name, const char *type, const char *help)
{
    dprintf(fd, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Host and port of a URL have no character that is special in a label's value. */
static void put_counts(const struct pusher *pusher, int fd,
                       const struct spool_counts counts[PUSH_TARGETS_MAX])
{
    static const struct {
        const char *name, *reason, *help;
        size_t offset;
    } rows[] = {
        {"fgprof_pushes_total", NULL, "Requests that a server has taken.",
         offsetof(struct spool_counts, sent)},
        {"fgprof_push_retries_total", NULL, "Requests that failed and are sent again.",
         offsetof(struct spool_counts, retries)},
        {"fgprof_push_drops_total", "refused", "Requests that were dropped.",
         offsetof(struct spool_counts, refused)},
        {"fgprof_push_drops_total", "full", NULL, offsetof(struct spool_counts, crowded)},
        {"fgprof_push_drops_total", "lost", NULL, offsetof(struct spool_counts, lost)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].help)
            put(fd, rows[i].name, "counter", rows[i].help);
        for (size_t j = 0; j < pusher->options->target_count; j++) {
            const struct push_target *target = &pusher->options->targets[j];
            uint64_t count;
            memcpy(&count, (const char *)&counts[j] + rows[i].offset, sizeof count);
            dprintf(fd, "%s{api=\"%s\",server=\"%s\"", rows[i].name,
                    target->api == PUSH_OTLP     ? "otlp"
                    : target->api == PUSH_INGEST ? "ingest"
                                                 : "push",
                    target->shown);
            if (rows[i].reason)
                dprintf(fd, ",reason=\"%s\"", rows[i].reason);
            dprintf(fd, "} %" PRIu64 "\n", count);
        }
    }
}

void pusher_write_metrics(struct pusher *pusher, int fd)
{
    struct spool_counts counts[PUSH_TARGETS_MAX];
    pthread_mutex_lock(&pusher->spool.lock);
    memcpy(counts, pusher->spool.counts, sizeof counts);
    uint64_t bytes = pusher->spool.bytes;
    size_t count = pusher->spool.count;
    pthread_mutex_unlock(&pusher->spool.lock);
    put_counts(pusher, fd, counts);
    put(fd, "fgprof_push_spool_requests", "gauge", "Requests that wait to be sent.");
    dprintf(fd, "fgprof_push_spool_requests %zu\n", count);
    put(fd, "fgprof_push_spool_bytes", "gauge", "Bytes of these.");
    dprintf(fd, "fgprof_push_spool_bytes %" PRIu64 "\n", bytes);
}
