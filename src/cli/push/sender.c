#include "cli/push/sender.h"
#include "cli/escape.h"
#include "cli/push/partial.h"
#include "cli/push/post.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_WAIT_NS 1000000000u
#define WAIT_MAX_PUSHES 6 /* while so many are due */
/* A server that fails at a request itself, and not for want of something, fails again. */
#define FAILURES_MAX 10

enum verdict { VERDICT_SENT, VERDICT_REFUSED, VERDICT_BUSY, VERDICT_FAILED };

/* What a status says (RFC 9110; for OTLP docs/specification.md of opentelemetry-proto, for
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

static void describe(const struct post_answer *answer, char *text, size_t text_bytes)
{
    if (answer->status)
        snprintf(text, text_bytes, "HTTP status %ld", answer->status);
    else
        snprintf(text, text_bytes, "%s", answer->why);
}

static void say_failure(struct sender *sender, const struct post_answer *answer)
{
    char why[300];
    describe(answer, why, sizeof why);
    if (!sender->has_said_failure)
        fprintf(stderr,
                "fgprof-c: can't push to %s: %s: profiles wait in %s and are sent later "
                "(reported once)\n",
                target_of(sender)->shown, why, sender->spool->path);
    sender->has_said_failure = true;
}

static void say_refusal(struct sender *sender, const struct post_answer *answer)
{
    char why[300];
    describe(answer, why, sizeof why);
    if (!sender->has_said_refusal)
        fprintf(stderr, "fgprof-c: %s does not take a profile: %s: it is dropped (reported once)\n",
                target_of(sender)->shown, why);
    sender->has_said_refusal = true;
}

/* A server of OTLP may leave out some profiles of a request, or say what it does not like of it. It
 * is not sent again. */
static void say_partial(struct sender *sender, const struct post_answer *answer)
{
    struct partial_success partial;
    char message[301];
    partial_success_read(answer->body, answer->body_bytes, &partial);
    if (sender->has_said_partial || (!partial.rejected && !partial.message_bytes))
        return;
    snprintf(message, sizeof message, "%.*s", (int)partial.message_bytes,
             partial.message_bytes ? partial.message : "");
    flockfile(stderr);
    fprintf(stderr, "fgprof-c: %s ", target_of(sender)->shown);
    if (partial.rejected)
        fprintf(stderr, "has left out %" PRIu64 " %s of a request", partial.rejected,
                partial.rejected == 1 ? "profile" : "profiles");
    else
        fputs("has taken a request, and says", stderr);
    fputs(*message ? ": " : "", stderr);
    print_escaped(message);
    fputs(" (reported once)\n", stderr);
    funlockfile(stderr);
    sender->has_said_partial = true;
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
        .deadline_ns = &sender->deadline_ns,
    };
    post_send(&post, answer);
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
    if (answer->has_retry_after)
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

static void *run(void *context)
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

int sender_start(struct sender *sender, struct spool *spool, size_t target, uint64_t every_ns)
{
    *sender = (struct sender){.spool = spool, .target = target};
    atomic_init(&sender->deadline_ns, UINT64_MAX);
    sender->first_wait_ns = every_ns < FIRST_WAIT_NS ? every_ns : FIRST_WAIT_NS;
    sender->wait_max_ns = every_ns * WAIT_MAX_PUSHES;
    sender->wait_ns = sender->first_wait_ns;
    return -pthread_create(&sender->thread, NULL, run, sender);
}

void sender_stop(struct sender *sender, uint64_t deadline_ns)
{
    atomic_store(&sender->deadline_ns, deadline_ns);
    pthread_join(sender->thread, NULL);
}
