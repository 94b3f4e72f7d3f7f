#include "cli/push/push.h"
#include "base/clock.h"
#include "cli/push/partial.h"
#include "cli/push/post.h"
#include "cli/push/post_packet.h"
#include "cli/push/spool.h"
#include "cli/say.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define FIRST_WAIT_NS 1000000000u
#define WAIT_MAX_PUSHES 6 /* while this many are due */
/* A server that fails at a request itself, and not for want of something, fails again. */
#define FAILURES_MAX 10
#define END_LOOK_MS 200 /* how often a thread that waits for an answer looks for the end */

/* Sends the spool's requests for one server, in a separate thread, so that a slow server delays
 * neither the sampling nor another server. */
struct sender {
    struct starter starter; /* of the processes that send */
    bool has_starter;
    struct spool *spool;
    size_t target;
    pthread_t thread;
    bool has_thread;
    atomic_uint_least64_t deadline_ns; /* CLOCK_MONOTONIC: the end of all */
    uint64_t first_wait_ns;            /* after a failure; twice that after the next, */
    uint64_t wait_max_ns;              /* but no longer than this */
    uint64_t wait_ns;
    bool has_said_failure, has_said_refusal, has_said_partial;
};

enum verdict { VERDICT_SENT, VERDICT_REFUSED, VERDICT_BUSY, VERDICT_FAILED };

/* What a status means (RFC 9110; for OTLP docs/specification.md of opentelemetry-proto, for
 * Pyroscope pkg/util/http of its source). */
static enum verdict judge(long status)
{
    switch (status) {
    case 0:   /* no answer */
    case 401: /* a token may be replaced at any time */
    case 403:
    case 407:
    case 408:
    case 429:
    case 502:
    case 503:
    case 504:
        return VERDICT_BUSY;
    default:
        return status >= 500                   ? VERDICT_FAILED
               : status >= 200 && status < 300 ? VERDICT_SENT
                                               : VERDICT_REFUSED;
    }
}

static const struct push_target *target_of(const struct sender *sender)
{
    return &sender->spool->options->targets[sender->target];
}

static const char *describe(const struct post_answer *answer, char *text, size_t text_bytes)
{
    if (!answer->status)
        return answer->why;
    snprintf(text, text_bytes, "HTTP status %ld", answer->status);
    return text;
}

static void say_failure(struct sender *sender, const struct post_answer *answer)
{
    char why[300];
    say_once(&sender->has_said_failure,
             "can't push to %s: %s: profiles wait in %s and are sent later",
             target_of(sender)->shown, describe(answer, why, sizeof why), sender->spool->path);
}

static void say_refusal(struct sender *sender, const struct post_answer *answer)
{
    char why[300];
    say_once(&sender->has_said_refusal, "%s does not take a profile: %s: it is dropped",
             target_of(sender)->shown, describe(answer, why, sizeof why));
}

/* An OTLP server may reject some profiles of a request, or answer with a warning. The request is
 * not sent again. */
static void say_partial(struct sender *sender, const struct post_answer *answer)
{
    struct partial_success partial;
    char message[301];
    partial_success_read(answer->body, answer->body_bytes, &partial);
    if (!partial.rejected && !partial.message_bytes)
        return;
    snprintf(message, sizeof message, "%.*s", (int)partial.message_bytes,
             partial.message_bytes ? partial.message : "");
    if (partial.rejected)
        say_once(&sender->has_said_partial, "%s has left out %" PRIu64 " %s of a request%s%s",
                 target_of(sender)->shown, partial.rejected,
                 partial.rejected == 1 ? "profile" : "profiles", *message ? ": " : "", message);
    else
        say_once(&sender->has_said_partial, "%s has taken a request, and says: %s",
                 target_of(sender)->shown, message);
}

/* Returns true if an answer comes, or the process that would give it ends, before the final
 * deadline, which may move closer meanwhile. */
static bool await_answer(struct sender *sender, int socket)
{
    struct pollfd answer = {.fd = socket, .events = POLLIN};
    while (monotonic_ns() < atomic_load(&sender->deadline_ns)) {
        if (poll(&answer, 1, END_LOOK_MS) > 0)
            return true;
    }
    return false;
}

static int receive_answer(struct sender *sender, int socket, struct post_answer *answer)
{
    struct packet packet = {0};
    if (!await_answer(sender, socket))
        return -ETIMEDOUT;
    int err = packet_receive(socket, monotonic_ns() + POST_WAIT_NS, &packet);
    if (!err)
        err = post_answer_read(&packet, answer);
    buffer_free(&packet.body);
    return err;
}

/* Makes a new process send it, so that none lives on with data from a server. */
static void send_post(struct sender *sender, const struct post *post, struct post_answer *answer)
{
    int socket = starter_start(&sender->starter);
    int err = socket < 0 ? socket : post_send(socket, post);
    if (!err)
        err = receive_answer(sender, socket, answer);
    if (socket >= 0)
        close(socket);
    if (err) {
        *answer = (struct post_answer){.status = 0};
        snprintf(answer->why, sizeof answer->why, "the process that sends: %s", strerror(-err));
    }
}

static void send_with(struct sender *sender, const struct body *body,
                      const struct credentials *credentials, struct post_answer *answer)
{
    const struct push_target *target = target_of(sender);
    char *url = NULL;
    if (asprintf(&url, "%s%s%s", target->url, body->query ? "?" : "",
                 body->query ? body->query : "") < 0) {
        *answer = (struct post_answer){.why = "out of memory"};
        return;
    }
    const struct post post = {
        .url = url,
        .type = body->type,
        .is_gzip = body->is_gzip,
        .is_connect = strcmp(body->type, BODY_CONNECT) == 0,
        .body = body->bytes,
        .body_bytes = body->length,
        .credentials = credentials,
        .ca_file = sender->spool->options->ca_file,
    };
    send_post(sender, &post, answer);
    free(url);
}

/* A token or password that can't be read now may be there later. */
static void send_body(struct sender *sender, const struct body *body, struct post_answer *answer)
{
    struct credentials *credentials = malloc(sizeof *credentials);
    *answer = (struct post_answer){.why = "out of memory"};
    if (!credentials)
        return;
    const char *problem = credentials_read(sender->spool->options, credentials);
    if (problem)
        snprintf(answer->why, sizeof answer->why, "the token, password or header can't be used: %s",
                 problem);
    else
        send_with(sender, body, credentials, answer);
    credentials_forget(credentials);
    free(credentials);
}

/* Half of it is left to chance, so that many profilers do not come back at once. */
static uint64_t with_jitter(uint64_t wait_ns)
{
    uint32_t chance = 0;
    ssize_t got = getrandom(&chance, sizeof chance, GRND_NONBLOCK);
    (void)got;
    return wait_ns / 2 + (wait_ns / 2 >> 16) * (chance >> 16);
}

/* Returns whether to go on. */
static bool back_off(struct sender *sender, const struct post_answer *answer)
{
    if (answer->retry_after_ns)
        return !spool_wait(sender->spool, answer->retry_after_ns);
    uint64_t wait_ns = with_jitter(sender->wait_ns);
    sender->wait_ns *= 2;
    if (sender->wait_ns > sender->wait_max_ns)
        sender->wait_ns = sender->wait_max_ns;
    spool_wait(sender->spool, wait_ns);
    return true;
}

/* At the end, each failure is the last. */
static bool is_ending(struct sender *sender)
{
    return spool_wait(sender->spool, 0);
}

static void *send_all(void *context)
{
    struct sender *sender = context;
    struct spool_entry *entry;
    while ((entry = spool_take(sender->spool, sender->target))) {
        struct post_answer answer;
        bool was_ending = is_ending(sender);
        send_body(sender, &entry->body, &answer);
        enum verdict verdict = judge(answer.status);
        if (verdict == VERDICT_FAILED && ++entry->failures == FAILURES_MAX)
            verdict = VERDICT_REFUSED;
        if (verdict == VERDICT_SENT || verdict == VERDICT_REFUSED) {
            if (verdict == VERDICT_REFUSED)
                say_refusal(sender, &answer);
            else if (target_of(sender)->api == PUSH_OTLP)
                say_partial(sender, &answer);
            spool_settle(sender->spool, entry,
                         verdict == VERDICT_SENT ? SPOOL_SENT : SPOOL_REFUSED);
            sender->wait_ns = sender->first_wait_ns;
            continue;
        }
        say_failure(sender, &answer);
        spool_settle(sender->spool, entry, SPOOL_KEPT);
        if (was_ending || !back_off(sender, &answer))
            break;
    }
    return NULL;
}

/* A request comes in every `every_ns`. Returns 0 or a negative errno. */
static int sender_start(struct sender *sender, struct spool *spool, size_t target,
                        uint64_t every_ns)
{
    sender->spool = spool;
    sender->target = target;
    atomic_init(&sender->deadline_ns, UINT64_MAX);
    sender->first_wait_ns = every_ns < FIRST_WAIT_NS ? every_ns : FIRST_WAIT_NS;
    sender->wait_max_ns = every_ns * WAIT_MAX_PUSHES;
    sender->wait_ns = sender->first_wait_ns;
    int err = -pthread_create(&sender->thread, NULL, send_all, sender);
    sender->has_thread = !err;
    return err;
}

/* ---- What is sent ---- */

#define EVERY_DEFAULT_NS 10000000000u
#define END_WAIT_NS 5000000000u

struct pusher {
    const struct push_options *options;
    struct session *session;
    uint64_t every_ns;
    unsigned kinds;
    struct spool spool;
    struct sender senders[PUSH_TARGETS_MAX];
    pthread_t thread;
    bool has_started;
    sem_t begun; /* posted when processes begin to be sampled, and at the end */
    atomic_bool is_ending;
    bool has_said_failure;
};

static void say_no_profile(struct pusher *pusher, int err)
{
    say_once(&pusher->has_said_failure, "a profile to push can't be made: %s", strerror(-err));
}

/* Gives the interval to the spool, in the form that each server wants. */
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
        say_no_profile(pusher, err);
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

/* Pushes at each multiple of the push interval, as Pyroscope's own agents do, and pushes the rest
 * once the processes have ended. */
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
            say_no_profile(pusher, err);
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
        say("the token, password or header to push with can't be used: %s", problem);
    else if (!post_load())
        say("can't push: libcurl is not installed (Debian: libcurl4)");
    else
        return true;
    return false;
}

static int start_threads(struct pusher *pusher)
{
    int err = 0;
    for (size_t i = 0; i < pusher->options->target_count && !err; i++)
        err = sender_start(&pusher->senders[i], &pusher->spool, i, pusher->every_ns);
    return err ? err : -pthread_create(&pusher->thread, NULL, run, pusher);
}

/* Waits a while for the rest to be sent. */
static void stop_senders(struct pusher *pusher)
{
    uint64_t deadline_ns = monotonic_ns() + END_WAIT_NS;
    spool_end(&pusher->spool);
    for (size_t i = 0; i < PUSH_TARGETS_MAX; i++)
        atomic_store(&pusher->senders[i].deadline_ns, deadline_ns);
    for (size_t i = 0; i < PUSH_TARGETS_MAX; i++) {
        if (pusher->senders[i].has_thread)
            pthread_join(pusher->senders[i].thread, NULL);
    }
}

struct pusher *pusher_new(const struct cli_options *options)
{
    const struct push_options *push = &options->push;
    struct pusher *pusher = is_usable(push) ? calloc(1, sizeof *pusher) : NULL;
    int err = 0;
    if (!pusher)
        return NULL;
    pusher->options = push;
    pusher->every_ns = push->every_ns ? push->every_ns : EVERY_DEFAULT_NS;
    pusher->kinds = push->kinds ? push->kinds : PUSH_KINDS_DEFAULT;
    sem_init(&pusher->begun, 0, 0);
    for (size_t i = 0; i < push->target_count && !err; i++) {
        err = starter_fork(&pusher->senders[i].starter, &post_role);
        pusher->senders[i].has_starter = !err;
    }
    if (!err)
        return pusher;
    say("can't push: %s", strerror(-err));
    pusher_free(pusher);
    return NULL;
}

bool pusher_start(struct pusher *pusher, struct session *session)
{
    pusher->session = session;
    if (!spool_open(&pusher->spool, pusher->options))
        return false;
    int err = start_threads(pusher);
    pusher->has_started = !err;
    if (!err)
        return true;
    stop_senders(pusher);
    spool_close(&pusher->spool);
    return say("can't push: %s", strerror(-err));
}

void pusher_free(struct pusher *pusher)
{
    if (!pusher)
        return;
    for (size_t i = 0; i < PUSH_TARGETS_MAX; i++) {
        if (pusher->senders[i].has_starter)
            starter_end(&pusher->senders[i].starter);
    }
    sem_destroy(&pusher->begun);
    free(pusher);
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
    if (!pusher || !pusher->has_started)
        return;
    pusher->has_started = false;
    atomic_store(&pusher->is_ending, true);
    sem_post(&pusher->begun);
    pthread_join(pusher->thread, NULL);
    stop_senders(pusher);
    spool_close(&pusher->spool);
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
