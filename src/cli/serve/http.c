#include "cli/serve/http.h"
#include "cli/serve/http_packet.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MEMORY_BYTES_MAX ((uint64_t)4 << 30) /* of addresses: most is room for threads' stacks */
#define REQUEST_BYTES_MAX 32768 /* of its head: longer ones are refused with 414 or 431 */
#define IDLE_S 30 /* a client that neither sends nor reads for this long is disconnected */
#define BODY_BYTES_MAX (1u << 20) /* pprof posts the addresses that it has no name for */

struct http {
    struct MHD_Daemon *daemon;
    int profiler; /* a socket; several threads send to it: */
    pthread_mutex_t sending;
    atomic_uint answering; /* requests that have come in and are not answered in full */
};

/* A request that has not been answered in full. */
struct incoming {
    size_t body_bytes;
};

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

static void add_headers(struct MHD_Response *response, const char *type, bool is_failure)
{
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (is_failure)
        MHD_add_response_header(response, "X-Go-Pprof", "1");
}

/* Needs no memory but libmicrohttpd's. */
static enum MHD_Result respond_unanswered(struct MHD_Connection *connection)
{
    static char why[] = "fgprof-c has no memory or no file for an answer, has too many requests at "
                        "once, or is ending\n";
    struct MHD_Response *response =
        MHD_create_response_from_buffer(sizeof why - 1, why, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    add_headers(response, "text/plain; charset=utf-8", true);
    enum MHD_Result result = MHD_queue_response(connection, 503, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result respond(struct MHD_Connection *connection, const struct answer *answer,
                               enum request_method method)
{
    struct MHD_Response *response = make_response(answer, method);
    if (!response) {
        close(answer->body_fd);
        return respond_unanswered(connection);
    }
    add_headers(response, answer->type, answer->is_failure);
    if (*answer->disposition)
        MHD_add_response_header(response, "Content-Disposition", answer->disposition);
    if (answer->status == 405)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    if (answer->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Basic realm=\"fgprof-c\"");
    enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- Questions to the profiler ---- */

static enum MHD_Result add_parameter(void *context, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    struct parameters *parameters = context;
    (void)kind;
    if (parameters->count == PARAMETERS_MAX)
        return MHD_NO;
    parameters->items[parameters->count++] = (struct parameter){name, value};
    return MHD_YES;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Makes a pair of sockets, and sends one to the profiler. Returns the other, or a negative errno.
 */
static int open_question(struct http *http)
{
    const struct buffer nothing = {0};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -errno;
    pthread_mutex_lock(&http->sending);
    int err = packet_send(http->profiler, HTTP_REQUEST, &nothing, ends[1]);
    pthread_mutex_unlock(&http->sending);
    close(ends[1]);
    if (err)
        close(ends[0]);
    return err ? err : ends[0];
}

/* Waits for an answer, which may take as long as the profile. If the client shuts down its side
 * meanwhile, so is our side of the socket, which tells the profiler. */
static void await_answer(int socket, int client_fd)
{
    struct pollfd waited[] = {{.fd = socket, .events = POLLIN},
                              {.fd = client_fd, .events = POLLRDHUP}};
    while (!waited[0].revents && (poll(waited, 2, -1) >= 0 || errno == EINTR)) {
        if (!waited[1].revents)
            continue;
        shutdown(socket, SHUT_WR);
        waited[1].fd = -1;
        waited[1].revents = 0;
    }
}

/* The answer is valid as long as the packet. */
static int ask(struct http *http, const struct question *question, int client_fd,
               struct packet *packet, struct answer *ret_answer)
{
    int socket = open_question(http);
    if (socket < 0)
        return socket;
    int err = question_send(socket, question, client_fd);
    if (!err) {
        await_answer(socket, client_fd);
        err = packet_receive(socket, 0, packet);
    }
    close(socket);
    if (err)
        return err;
    err = answer_read(packet, ret_answer);
    if (err && packet->fd >= 0)
        close(packet->fd);
    return err;
}

static enum MHD_Result pass_on(struct http *http, struct MHD_Connection *connection,
                               const char *path, const char *method)
{
    struct question question = {
        .method = method_of(method),
        .path = path,
        .host = header(connection, MHD_HTTP_HEADER_HOST),
        .authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
        .site = header(connection, "Sec-Fetch-Site"),
        .mode = header(connection, "Sec-Fetch-Mode"),
        .destination = header(connection, "Sec-Fetch-Dest"),
    };
    struct packet packet = {0};
    struct answer answer;
    int client_fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_parameter,
                              &question.parameters);
    int err = ask(http, &question, client_fd, &packet, &answer);
    enum MHD_Result result =
        err ? respond_unanswered(connection) : respond(connection, &answer, question.method);
    buffer_free(&packet.body);
    return result;
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
    /* What is being made is no idle time of the client. */
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    enum MHD_Result result = pass_on(http, connection, path, method);
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)IDLE_S);
    return result;
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

/* ---- The process ---- */

static bool start(struct http *http, int listening_fd)
{
    http->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_ITC,
        0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, listening_fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES_MAX,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_END);
    return http->daemon;
}

/* Takes no more connections, waits a while for the answers under way, and ends. */
static void stop(struct http *http)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int listening_fd = MHD_quiesce_daemon(http->daemon);
    for (unsigned ms = 0; ms < HTTP_END_MS && atomic_load(&http->answering); ms += 10)
        nanosleep(&pause, NULL);
    MHD_stop_daemon(http->daemon);
    close(listening_fd);
}

static void serve(int socket)
{
    struct http http = {.profiler = socket, .sending = PTHREAD_MUTEX_INITIALIZER};
    struct packet packet = {0};
    signal(SIGPIPE, SIG_IGN);
    if (packet_receive(socket, 0, &packet) == 0 && packet.kind == HTTP_LISTEN && packet.fd >= 0 &&
        start(&http, packet.fd)) {
        /* The profiler says no more. */
        while (packet_receive(socket, 0, &packet) == 0)
            ;
        stop(&http);
    }
    buffer_free(&packet.body);
}

const struct helper_role http_role = {HTTP_NAME, serve, MEMORY_BYTES_MAX, SANDBOX_SERVES};
