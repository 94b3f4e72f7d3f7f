#include "cli/serve/http_server.h"
#include "base/clock.h"
#include "cli/say.h"
#include "cli/serve/access.h"
#include "cli/serve/http.h"
#include "cli/serve/http_packet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define QUESTION_WAIT_NS 5000000000u
/* A process that ends as soon as it is started must not keep us busy. */
#define RESTART_NS 500000000u
#define END_NS ((uint64_t)HTTP_END_MS * 1000000 + NS_PER_S)

struct http_server {
    struct starter starter;
    bool has_starter;
    const struct listener *listener;
    struct session *session;
    struct access_rules rules;
    struct quota quota;
    pthread_t thread; /* takes requests */
    bool has_thread;
    bool has_said_restart;
    pthread_mutex_t lock; /* protects what follows */
    pthread_cond_t changed;
    int http; /* a socket to the process; -1: there is none */
    bool is_ending, has_ended;
    bool has_failed;    /* nothing can speak HTTP any more */
    unsigned answering; /* threads, one for each request */
};

/* A request. */
struct call {
    struct http_server *server;
    int socket; /* the answer goes there; it is hung up if the client has gone */
    struct peer peer;
};

/* ---- Answers ---- */

static bool is_equal(const char *header, const char *value)
{
    return header && strcmp(header, value) == 0;
}

/* A page of another site could not read the answer, but it could start profiles. Following a link
 * is the user's own wish; a frame in that page is not. */
static bool is_from_another_site(const struct question *question)
{
    bool follows_link = is_equal(question->mode, "navigate") &&
                        (!question->destination || strcmp(question->destination, "document") == 0);
    return is_equal(question->site, "cross-site") && !follows_link;
}

/* Says how to get in. */
static void refuse_user(struct answer *answer, const struct access_rules *rules,
                        const struct peer *peer)
{
    static const char ways[] = "to let others in, start fgprof-c serve with --allow-local-users or "
                               "--token-file FILE";
    char allowed[48] = "root", who[96];
    if (rules->own_uid)
        snprintf(allowed, sizeof allowed, "user %u or root", (unsigned)rules->own_uid);
    if (peer->has_uid)
        snprintf(who, sizeof who, "user %u may not ask", (unsigned)peer->uid);
    else
        snprintf(who, sizeof who, "the user of this connection can't be found out%s",
                 peer->is_local ? " (is it in another namespace?)" : "");
    answer_failure(answer, 403, "%s: ask as %s on this machine; %s", who, allowed, ways);
}

/* If it may not ask, answers why, and returns false. */
static bool check_access(enum access access, const struct access_rules *rules,
                         const struct peer *peer, struct answer *answer)
{
    switch (access) {
    case ACCESS_GRANTED:
    case ACCESS_BY_TOKEN:
        return true;
    case ACCESS_WITHOUT_TOKEN:
        return answer_failure(answer, 401,
                              "send the token of --token-file: in the header Authorization: "
                              "Bearer TOKEN, or as a password, as in http://any:TOKEN@HOST:PORT/");
    case ACCESS_TOKEN_UNREADABLE:
        return answer_failure(answer, 503, "the file of --token-file holds no token now");
    default:
        refuse_user(answer, rules, peer);
        return false;
    }
}

static void answer_question(const struct call *call, const struct question *question,
                            struct answer *answer)
{
    struct http_server *server = call->server;
    struct request request = {
        .session = server->session,
        .method = question->method,
        .path = question->path,
        .parameters = &question->parameters,
        .quota = &server->quota,
        .peer = call->peer,
        .client_fd = call->socket,
    };
    enum access access = access_check(&server->rules, &request.peer, question->authorization);
    if (!check_access(access, &server->rules, &request.peer, answer))
        return;
    /* A page of another site whose name leads here (DNS rebinding) can read the answer, but it has
     * no token. With one, a proxy may pass on whatever name it has. */
    if (is_from_another_site(question))
        answer_failure(answer, 403, "a page of another site asks for this");
    else if (access == ACCESS_BY_TOKEN || listener_is_named(server->listener, question->host))
        answer_request(&request, answer);
    else
        answer_failure(answer, 403, "the header Host does not name this server");
}

static void answer_packet(const struct call *call, const struct packet *packet)
{
    struct question question;
    struct answer answer = {.body_fd = memfd_create("answer", MFD_CLOEXEC)};
    if (answer.body_fd < 0)
        return;
    if (question_read(packet, &question) == 0) {
        answer_question(call, &question, &answer);
        answer_send(call->socket, &answer);
    }
    close(answer.body_fd);
}

/* ---- A thread for each request ---- */

static void end_call(struct call *call)
{
    struct http_server *server = call->server;
    close(call->socket);
    free(call);
    pthread_mutex_lock(&server->lock);
    server->answering--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void *run_call(void *context)
{
    struct call *call = context;
    struct packet packet = {0};
    int err = packet_receive(call->socket, monotonic_ns() + QUESTION_WAIT_NS, &packet);
    peer_find(packet.fd, &call->peer);
    if (packet.fd >= 0)
        close(packet.fd);
    if (!err)
        answer_packet(call, &packet);
    buffer_free(&packet.body);
    end_call(call);
    return NULL;
}

static bool may_answer_more(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool may = server->answering < CONNECTIONS_MAX;
    server->answering += may;
    pthread_mutex_unlock(&server->lock);
    return may;
}

/* The socket is closed if there are too many. */
static void begin_call(struct http_server *server, int socket)
{
    struct call *call = malloc(sizeof *call);
    pthread_attr_t detached;
    pthread_t thread;
    if (!call || !may_answer_more(server)) {
        free(call);
        close(socket);
        return;
    }
    *call = (struct call){.server = server, .socket = socket};
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &detached, run_call, call))
        end_call(call);
    pthread_attr_destroy(&detached);
}

/* ---- The process that speaks HTTP ---- */

/* Starts it. Returns 0 or a negative errno: -EPIPE if nothing can start it any more. */
static int start_http(struct http_server *server)
{
    const struct buffer nothing = {0};
    int http = starter_start(&server->starter);
    if (http < 0)
        return http;
    int err = packet_send(http, HTTP_LISTEN, &nothing, server->listener->fd);
    if (err == -EPIPE)
        err = -ECONNRESET; /* it has ended already */
    pthread_mutex_lock(&server->lock);
    if (!err && server->is_ending)
        err = -ECANCELED;
    server->http = err ? -1 : http;
    pthread_mutex_unlock(&server->lock);
    if (err)
        close(http);
    return err;
}

static void forget_http(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    close(server->http);
    server->http = -1;
    pthread_mutex_unlock(&server->lock);
}

static void take_requests(struct http_server *server)
{
    struct packet packet = {0};
    int err;
    while (!(err = packet_receive(server->http, 0, &packet)) || err == -ENOMEM) {
        if (!err && packet.kind == HTTP_REQUEST && packet.fd >= 0)
            begin_call(server, packet.fd);
        else if (packet.fd >= 0)
            close(packet.fd);
    }
    buffer_free(&packet.body);
    forget_http(server);
}

/* With the lock held. */
static void wait_until(struct http_server *server, uint64_t until_ns)
{
    const struct timespec until = timespec_of_ns(until_ns);
    pthread_cond_timedwait(&server->changed, &server->lock, &until);
}

/* Returns whether to go on. */
static bool pause_before_restart(struct http_server *server)
{
    uint64_t until_ns = monotonic_ns() + RESTART_NS;
    pthread_mutex_lock(&server->lock);
    while (!server->is_ending && monotonic_ns() < until_ns)
        wait_until(server, until_ns);
    bool goes_on = !server->is_ending;
    server->has_ended = !goes_on;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return goes_on;
}

/* Without the process that starts others, the socket would still be listened at, and nobody be
 * answered: whoever watches us shall start us again. */
static void give_up(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->has_failed |= !server->is_ending;
    pthread_mutex_unlock(&server->lock);
    session_stop(server->session);
}

static void *run(void *context)
{
    struct http_server *server = context;
    int err = 0;
    do {
        if (!err)
            take_requests(server);
        if (!pause_before_restart(server))
            return NULL;
        err = start_http(server);
        if (err == -EPIPE)
            give_up(server);
        else if (err != -ECANCELED)
            say_once(&server->has_said_restart, "the process that speaks HTTP has ended%s%s",
                     err ? ", and can't be started again: " : ": it is started again",
                     err ? strerror(-err) : "");
    } while (true);
}

int http_server_new(struct http_server **ret_server)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (!server)
        return -ENOMEM;
    server->http = -1;
    quota_init(&server->quota);
    pthread_mutex_init(&server->lock, NULL);
    condition_init(&server->changed);
    int err = starter_fork(&server->starter, &http_role);
    server->has_starter = !err;
    if (err)
        http_server_free(server);
    else
        *ret_server = server;
    return err;
}

int http_server_start(struct http_server *server, const struct listener *listener,
                      struct session *session)
{
    server->listener = listener;
    server->session = session;
    server->rules = (struct access_rules){
        .own_uid = geteuid(),
        .allows_local_users = session->options->allows_local_users,
        .token_file = session->options->token_file,
    };
    int err = start_http(server);
    if (!err)
        err = -pthread_create(&server->thread, NULL, run, server);
    server->has_thread = !err;
    return err;
}

/* The process ends the answers under way, and is killed if that takes too long. */
bool http_server_stop(struct http_server *server)
{
    if (!server || !server->has_thread)
        return true;
    uint64_t until_ns = monotonic_ns() + END_NS;
    pthread_mutex_lock(&server->lock);
    server->is_ending = true;
    if (server->http >= 0)
        shutdown(server->http, SHUT_WR);
    pthread_cond_broadcast(&server->changed);
    while (!server->has_ended && monotonic_ns() < until_ns)
        wait_until(server, until_ns);
    pthread_mutex_unlock(&server->lock);
    starter_end(&server->starter);
    server->has_starter = false;
    pthread_join(server->thread, NULL);
    server->has_thread = false;
    pthread_mutex_lock(&server->lock);
    while (server->answering)
        pthread_cond_wait(&server->changed, &server->lock);
    pthread_mutex_unlock(&server->lock);
    return !server->has_failed;
}

void http_server_free(struct http_server *server)
{
    if (!server)
        return;
    http_server_stop(server);
    if (server->http >= 0)
        close(server->http);
    if (server->has_starter)
        starter_end(&server->starter);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    quota_destroy(&server->quota);
    free(server);
}
