#include "cli/serve/http.h"
#include "cli/serve/access.h"
#include "cli/serve/request.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 128
#define REQUEST_BYTES_MAX 32768   /* of its head: longer ones are refused with 414 or 431 */
#define IDLE_S 30                 /* a client that neither sends nor reads for so long is let go */
#define BODY_BYTES_MAX (1u << 20) /* pprof posts the addresses that it has no name for */
#define END_WAIT_MS 5000

struct http {
    struct MHD_Daemon *daemon;
    const struct listener *listener;
    struct session *session;
    struct access_rules rules;
    struct quota quota;
    atomic_uint answering; /* requests that have come in and are not answered in full */
};

/* A request that has not been answered in full. */
struct incoming {
    size_t body_bytes;
};

static const char *parameter(const struct request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

static enum request_method method_of(const char *name)
{
    return strcmp(name, "GET") == 0    ? METHOD_GET
           : strcmp(name, "HEAD") == 0 ? METHOD_HEAD
           : strcmp(name, "POST") == 0 ? METHOD_POST
                                       : METHOD_OTHER;
}

static ssize_t read_nothing(void *context, uint64_t at, char *bytes, size_t bytes_max)
{
    (void)context, (void)at, (void)bytes, (void)bytes_max;
    return MHD_CONTENT_READER_END_OF_STREAM;
}

/* The head alone of a profile is asked for without making it, so that its length is not known. */
static struct MHD_Response *make_response(const struct answer *answer, enum request_method method)
{
    struct stat status;
    struct MHD_Response *response = NULL;
    bool is_known = fstat(answer->body_fd, &status) == 0;
    if (is_known && method == METHOD_HEAD && !status.st_size)
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1, read_nothing, NULL, NULL);
    else if (is_known)
        return MHD_create_response_from_fd((size_t)status.st_size, answer->body_fd);
    if (response)
        close(answer->body_fd);
    return response;
}

static enum MHD_Result respond(struct MHD_Connection *connection, const struct answer *answer,
                               enum request_method method)
{
    struct MHD_Response *response = make_response(answer, method);
    if (!response) {
        close(answer->body_fd);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", answer->type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (*answer->disposition)
        MHD_add_response_header(response, "Content-Disposition", answer->disposition);
    if (answer->is_failure)
        MHD_add_response_header(response, "X-Go-Pprof", "1");
    if (answer->status == 405)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    if (answer->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Basic realm=\"fgprof-c\"");
    enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* Such a page could not read the answer, but have profiles made; a link that is followed is the
 * user's own wish (www.w3.org/TR/fetch-metadata). */
static bool is_from_another_site(struct MHD_Connection *connection)
{
    const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");
    const char *mode = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Mode");
    return site && strcmp(site, "cross-site") == 0 && !(mode && strcmp(mode, "navigate") == 0);
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
static bool check_access(const struct http *http, struct MHD_Connection *connection,
                         const struct peer *peer, struct answer *answer)
{
    const char *authorization =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    switch (access_check(&http->rules, peer, authorization)) {
    case ACCESS_GRANTED:
        return true;
    case ACCESS_WITHOUT_TOKEN:
        return answer_failure(answer, 401,
                              "send the token of --token-file: in the header Authorization: "
                              "Bearer TOKEN, or as a password, as in http://any:TOKEN@HOST:PORT/");
    case ACCESS_TOKEN_UNREADABLE:
        return answer_failure(answer, 503, "the file of --token-file holds no token now");
    default:
        refuse_user(answer, &http->rules, peer);
        return false;
    }
}

static void answer(struct http *http, struct MHD_Connection *connection, const char *path,
                   const char *method, struct answer *answer)
{
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    struct request request = {
        .session = http->session,
        .method = method_of(method),
        .path = path,
        .parameter = parameter,
        .connection = connection,
        .quota = &http->quota,
        .client_fd =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
    };
    peer_find(request.client_fd, &request.peer);
    if (!check_access(http, connection, &request.peer, answer))
        return;
    if (is_from_another_site(connection))
        answer_failure(answer, 403, "a page of another site asks for this");
    else if (listener_is_named(http->listener, host))
        answer_request(&request, answer);
    else
        answer_failure(answer, 403, "the header Host does not name this server");
}

/* Called when the head of a request is there, for each part of its body, and at its end. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *body, size_t *body_bytes, void **state)
{
    struct http *http = context;
    struct incoming *incoming = *state;
    (void)version, (void)body;
    if (!incoming) {
        *state = incoming = calloc(1, sizeof *incoming);
        if (incoming)
            atomic_fetch_add(&http->answering, 1);
        return incoming ? MHD_YES : MHD_NO;
    }
    incoming->body_bytes += *body_bytes;
    if (*body_bytes) {
        *body_bytes = 0; /* nothing in it is of use */
        return incoming->body_bytes <= BODY_BYTES_MAX ? MHD_YES : MHD_NO;
    }
    struct answer made = {.body_fd = memfd_create("answer", MFD_CLOEXEC)};
    if (made.body_fd < 0)
        return MHD_NO;
    /* What is being made is no idle time of the client. */
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    answer(http, connection, path, method, &made);
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)IDLE_S);
    return respond(connection, &made, method_of(method));
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    struct http *http = context;
    (void)connection, (void)why;
    if (*state)
        atomic_fetch_sub(&http->answering, 1);
    free(*state);
    *state = NULL;
}

struct http *http_start(const struct listener *listener, struct session *session)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http)
        return NULL;
    http->listener = listener;
    http->session = session;
    http->rules = (struct access_rules){
        .own_uid = geteuid(),
        .allows_local_users = session->options->allows_local_users,
        .token_file = session->options->token_file,
    };
    quota_init(&http->quota);
    http->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_ITC,
        0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, listener->fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES_MAX,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_END);
    if (!http->daemon) {
        quota_destroy(&http->quota);
        free(http);
        return NULL;
    }
    return http;
}

void http_stop(struct http *http)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    MHD_quiesce_daemon(http->daemon);
    for (unsigned ms = 0; ms < END_WAIT_MS && atomic_load(&http->answering); ms += 10)
        nanosleep(&pause, NULL);
    MHD_stop_daemon(http->daemon);
    quota_destroy(&http->quota);
    free(http);
}
