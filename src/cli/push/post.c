#include "cli/push/post.h"
#include "base/clock.h"
#include "cli/push/post_packet.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNECT_WAIT_MS 10000L
#define ANSWER_WAIT_MS 60000L
#define ANSWER_BYTES_MAX 65536u

/* The numbers of libcurl's options and codes, which are part of its ABI (curl/curl.h). */
enum {
    OPTION_WRITEDATA = 10001,
    OPTION_URL = 10002,
    OPTION_ERRORBUFFER = 10010,
    OPTION_POSTFIELDS = 10015,
    OPTION_USERAGENT = 10018,
    OPTION_HTTPHEADER = 10023,
    OPTION_XFERINFODATA = 10057,
    OPTION_CAINFO = 10065,
    OPTION_USERPWD = 10005,
    OPTION_WRITEFUNCTION = 20011,
    OPTION_XFERINFOFUNCTION = 20219,
    OPTION_NOPROGRESS = 43,
    OPTION_POST = 47,
    OPTION_NOSIGNAL = 99,
    OPTION_HTTPAUTH = 107,
    OPTION_POSTFIELDSIZE_LARGE = 30120,
    OPTION_TIMEOUT_MS = 155,
    OPTION_CONNECTTIMEOUT_MS = 156,
    OPTION_PROTOCOLS = 181,
    OPTION_QUICK_EXIT = 322, /* since 7.87.0 */

    AUTH_BASIC = 1,
    PROTOCOLS_HTTP_AND_HTTPS = 3,
    INFO_RESPONSE_CODE = 0x200002,
    INFO_RETRY_AFTER = 0x600039, /* since 7.66.0 */
    GLOBAL_ALL = 3,
    ERROR_BYTES = 256,
};

struct slist; /* struct curl_slist */

static struct {
    int (*global_init)(long flags);
    void *(*easy_init)(void);
    void (*easy_cleanup)(void *easy);
    int (*easy_setopt)(void *easy, int option, ...);
    int (*easy_getinfo)(void *easy, int info, ...);
    int (*easy_perform)(void *easy);
    const char *(*easy_strerror)(int code);
    struct slist *(*slist_append)(struct slist *list, const char *text);
    void (*slist_free_all)(struct slist *list);
} curl;

bool post_load(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    const struct {
        const char *name;
        void *place; /* of a pointer to a function */
    } functions[] = {
        {"curl_global_init", &curl.global_init},       {"curl_easy_init", &curl.easy_init},
        {"curl_easy_cleanup", &curl.easy_cleanup},     {"curl_easy_setopt", &curl.easy_setopt},
        {"curl_easy_getinfo", &curl.easy_getinfo},     {"curl_easy_perform", &curl.easy_perform},
        {"curl_easy_strerror", &curl.easy_strerror},   {"curl_slist_append", &curl.slist_append},
        {"curl_slist_free_all", &curl.slist_free_all},
    };
    void *handle = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return false;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(handle, functions[i].name);
        if (!function)
            return false;
        memcpy(functions[i].place, &function, sizeof function);
    }
    return curl.global_init(GLOBAL_ALL) == 0;
}

struct reception {
    struct post_answer *answer;
    size_t seen; /* bytes of its body */
};

/* Called by libcurl with what the server says. Enough of it ends the transfer. */
static size_t on_answer(const char *bytes, size_t size, size_t count, void *context)
{
    struct reception *reception = context;
    struct post_answer *answer = reception->answer;
    size_t length = size * count, room = sizeof answer->body - answer->body_bytes;
    size_t kept = length < room ? length : room;
    memcpy(answer->body + answer->body_bytes, bytes, kept);
    answer->body_bytes += kept;
    reception->seen += length;
    return reception->seen <= ANSWER_BYTES_MAX ? length : 0;
}

/* Called by libcurl at least once a second, even if no data moves. Returns 1 to abort, because
 * nobody waits for the answer any more. */
static int on_progress(void *context, int64_t to_get, int64_t got, int64_t to_send, int64_t sent)
{
    struct pollfd profiler = {.fd = *(const int *)context, .events = POLLRDHUP};
    (void)to_get, (void)got, (void)to_send, (void)sent;
    return poll(&profiler, 1, 0) > 0;
}

/* NULL if memory is short: without one of them the request would be another. */
static struct slist *append(struct slist *list, const char *header)
{
    struct slist *grown = curl.slist_append(list, header);
    if (!grown)
        curl.slist_free_all(list);
    return grown;
}

static struct slist *headers_of(const struct post *post)
{
    char type[256];
    snprintf(type, sizeof type, "Content-Type: %s", post->type);
    const char *const headers[] = {
        type,
        "Expect:", /* no pause before the body */
        "Accept:",
        post->is_gzip ? "Content-Encoding: gzip" : NULL,
        post->is_connect ? "Connect-Protocol-Version: 1" : NULL,
        *post->credentials->header ? post->credentials->header : NULL,
    };
    struct slist *list = NULL;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        if (headers[i] && !(list = append(list, headers[i])))
            return NULL;
    }
    const char *other = post->credentials->others;
    for (; *other; other += strlen(other) + 1) {
        if (!(list = append(list, other)))
            return NULL;
    }
    return list;
}

/* As curl(1) finds them. */
static const char *certificates(const struct post *post)
{
    const char *named = getenv("CURL_CA_BUNDLE");
    if (post->ca_file)
        return post->ca_file;
    return named && *named ? named : getenv("SSL_CERT_FILE");
}

static void set_up(void *easy, const struct post *post, const int *profiler, struct slist *headers,
                   struct reception *reception, char *error)
{
    const char *ca_file = certificates(post);
    curl.easy_setopt(easy, OPTION_NOSIGNAL, 1L);
    curl.easy_setopt(easy, OPTION_QUICK_EXIT, 1L); /* no wait for a name server at the end */
    curl.easy_setopt(easy, OPTION_URL, post->url);
    curl.easy_setopt(easy, OPTION_PROTOCOLS, (long)PROTOCOLS_HTTP_AND_HTTPS);
    curl.easy_setopt(easy, OPTION_USERAGENT, "fgprof-c");
    curl.easy_setopt(easy, OPTION_POST, 1L);
    curl.easy_setopt(easy, OPTION_POSTFIELDS, post->body);
    curl.easy_setopt(easy, OPTION_POSTFIELDSIZE_LARGE, (int64_t)post->body_bytes);
    curl.easy_setopt(easy, OPTION_HTTPHEADER, headers);
    curl.easy_setopt(easy, OPTION_CONNECTTIMEOUT_MS, CONNECT_WAIT_MS);
    curl.easy_setopt(easy, OPTION_TIMEOUT_MS, ANSWER_WAIT_MS);
    curl.easy_setopt(easy, OPTION_NOPROGRESS, 0L);
    curl.easy_setopt(easy, OPTION_XFERINFOFUNCTION, on_progress);
    curl.easy_setopt(easy, OPTION_XFERINFODATA, profiler);
    curl.easy_setopt(easy, OPTION_WRITEFUNCTION, on_answer);
    curl.easy_setopt(easy, OPTION_WRITEDATA, reception);
    curl.easy_setopt(easy, OPTION_ERRORBUFFER, error);
    if (ca_file && *ca_file)
        curl.easy_setopt(easy, OPTION_CAINFO, ca_file);
    if (*post->credentials->password) {
        curl.easy_setopt(easy, OPTION_HTTPAUTH, (long)AUTH_BASIC);
        curl.easy_setopt(easy, OPTION_USERPWD, post->credentials->password);
    }
}

static void read_answer(void *easy, struct post_answer *answer)
{
    int64_t seconds = 0;
    curl.easy_getinfo(easy, INFO_RESPONSE_CODE, &answer->status);
    if (curl.easy_getinfo(easy, INFO_RETRY_AFTER, &seconds) || seconds <= 0)
        return;
    answer->retry_after_ns =
        (seconds < RETRY_AFTER_MAX_S ? (uint64_t)seconds : RETRY_AFTER_MAX_S) * 1000000000u;
}

static void perform(void *easy, const struct post *post, const int *profiler, struct slist *headers,
                    struct post_answer *answer)
{
    char error[ERROR_BYTES] = "";
    struct reception reception = {.answer = answer};
    set_up(easy, post, profiler, headers, &reception, error);
    int code = curl.easy_perform(easy);
    /* A server may refuse, and hang up, before it has read all. */
    read_answer(easy, answer);
    if (code && answer->status < 300 && reception.seen <= ANSWER_BYTES_MAX)
        answer->status = 0;
    if (!answer->status)
        snprintf(answer->why, sizeof answer->why, "%s", *error ? error : curl.easy_strerror(code));
}

/* Sends the request and waits for the answer. No redirection is followed. */
static void send_post(const struct post *post, const int *profiler, struct post_answer *ret_answer)
{
    *ret_answer = (struct post_answer){.why = "out of memory"};
    void *easy = curl.easy_init();
    struct slist *headers = headers_of(post);
    if (easy && headers)
        perform(easy, post, profiler, headers, ret_answer);
    curl.slist_free_all(headers);
    if (easy)
        curl.easy_cleanup(easy);
}

/* ---- The process ---- */

#define MEMORY_BYTES_MAX ((uint64_t)4 << 30)

/* The body is in the file that came with the request. */
static void send_file(struct post *post, int fd, const int *profiler,
                      struct post_answer *ret_answer)
{
    struct stat status;
    *ret_answer = (struct post_answer){.why = "the request can't be read"};
    if (fstat(fd, &status))
        return;
    post->body_bytes = (size_t)status.st_size;
    void *body = mmap(NULL, post->body_bytes + 1, PROT_READ, MAP_PRIVATE, fd, 0);
    if (body == MAP_FAILED)
        return;
    post->body = body;
    send_post(post, profiler, ret_answer);
    munmap(body, post->body_bytes + 1);
}

/* For one request. */
static void serve(int socket)
{
    struct packet packet = {0};
    struct post post;
    struct post_answer answer;
    signal(SIGPIPE, SIG_IGN);
    if (packet_receive(socket, monotonic_ns() + POST_WAIT_NS, &packet) == 0 &&
        post_read(&packet, &post) == 0) {
        send_file(&post, packet.fd, &socket, &answer);
        post_answer_send(socket, &answer);
    }
    if (packet.fd >= 0)
        close(packet.fd);
    if (packet.body.length)
        explicit_bzero(packet.body.bytes, packet.body.length);
    buffer_free(&packet.body);
}

const struct helper_role post_role = {PUSH_NAME, serve, MEMORY_BYTES_MAX, SANDBOX_CONNECTS};
