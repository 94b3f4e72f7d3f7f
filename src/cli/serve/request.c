#include "cli/serve/request.h"
#include "base/procfs_file.h"
#include "cli/options/values.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_LINE_MAX 65536

bool answer_failure(struct answer *answer, unsigned status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    answer->status = status;
    answer->type = "text/plain; charset=utf-8";
    answer->is_failure = true;
    *answer->disposition = '\0';
    if (ftruncate(answer->body_fd, 0) == 0 && lseek(answer->body_fd, 0, SEEK_SET) == 0 &&
        vdprintf(answer->body_fd, format, arguments) >= 0)
        dprintf(answer->body_fd, "\n");
    va_end(arguments);
    return false;
}

const char *request_parameter(const struct request *request, const char *name)
{
    const struct parameters *parameters = request->parameters;
    for (size_t i = 0; i < parameters->count; i++) {
        if (strcmp(parameters->items[i].name, name) == 0)
            return parameters->items[i].value;
    }
    return NULL;
}

bool request_take(const struct request *request, struct answer *answer,
                  fgprof_recorder **ret_recorder)
{
    int err = session_take(request->session, ret_recorder);
    if (err == -EBUSY)
        return answer_failure(answer, 503, "%d requests are being answered: try again",
                              SESSION_USERS_MAX);
    if (err)
        return answer_failure(answer, 503, "no process is sampled now");
    if (!request->quota || quota_take(request->quota, &request->peer))
        return true;
    session_give_back(request->session);
    return answer_failure(answer, 429,
                          "%d profiles are being made for you: try again when one is done",
                          QUOTA_PROFILES_MAX);
}

void request_give_back(const struct request *request)
{
    if (request->quota)
        quota_give_back(request->quota, &request->peer);
    session_give_back(request->session);
}

bool request_number(const struct request *request, struct answer *answer, const char *name,
                    uint64_t least, uint64_t most, uint64_t by_default, uint64_t *ret_number)
{
    const char *value = request_parameter(request, name);
    *ret_number = by_default;
    if (!value || number_parse(value, least, most, ret_number))
        return true;
    return answer_failure(answer, 400, "%s must be a whole number from %" PRIu64 " to %" PRIu64,
                          name, least, most);
}

/* As Go's: the words of the command line, with a NUL between them. */
static void answer_cmdline(const struct request *request, struct answer *answer)
{
    char path[32], line[COMMAND_LINE_MAX + 1];
    fgprof_recorder *recorder;
    if (!request_take(request, answer, &recorder))
        return;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)request->session->targets.pids[0]);
    request_give_back(request);
    ssize_t length = procfs_read(AT_FDCWD, path, line, sizeof line);
    while (length > 0 && !line[length - 1])
        length--;
    if (length < 0 || write(answer->body_fd, line, (size_t)length) != length)
        answer_failure(answer, 503, "no process is sampled now");
}

/* Profiles already have all names that are known, so no more can be looked up. pprof nevertheless
 * asks about addresses without a name, and gives up if it is refused (internal/symbolz). */
static void answer_symbol(const struct request *request, struct answer *answer)
{
    (void)request;
    dprintf(answer->body_fd, "num_symbols: 0\n");
}

static const struct {
    const char *path;
    void (*answer)(const struct request *request, struct answer *answer);
    const char *type; /* unless it sets another one */
} paths[] = {
    {"/", answer_page, "text/html; charset=utf-8"},
    {"/top", answer_top, "text/plain; charset=utf-8"},
    {"/metrics", answer_metrics, "text/plain; version=0.0.4; charset=utf-8"},
    {"/debug/fgprof", answer_fgprof, NULL},
    {"/debug/pprof", answer_index, "text/html; charset=utf-8"},
    {"/debug/pprof/", answer_index, "text/html; charset=utf-8"},
    {"/debug/pprof/profile", answer_pprof, NULL},
    {"/debug/pprof/block", answer_pprof, NULL},
    {"/debug/pprof/mutex", answer_pprof, NULL},
    {"/debug/pprof/heap", answer_pprof, NULL},
    {"/debug/pprof/allocs", answer_pprof, NULL},
    {"/debug/pprof/threadcreate", answer_pprof, NULL},
    {"/debug/pprof/goroutine", answer_threads, NULL},
    {"/debug/pprof/cmdline", answer_cmdline, "text/plain; charset=utf-8"},
    {"/debug/pprof/symbol", answer_symbol, "text/plain; charset=utf-8"},
    {"/symbolz", answer_symbol, "text/plain; charset=utf-8"},
};

static bool is_read(const struct request *request, struct answer *answer)
{
    if (request->method == METHOD_GET || request->method == METHOD_HEAD)
        return true;
    return answer_failure(answer, 405, "only GET and HEAD are answered");
}

void answer_request(const struct request *request, struct answer *answer)
{
    static const char profiles[] = "/debug/pprof/";
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (strcmp(request->path, paths[i].path) != 0)
            continue;
        bool may_post = request->method == METHOD_POST && paths[i].answer == answer_symbol;
        if (!may_post && !is_read(request, answer))
            return;
        answer->status = 200;
        answer->type = paths[i].type;
        paths[i].answer(request, answer);
        return;
    }
    if (strncmp(request->path, profiles, sizeof profiles - 1) != 0)
        answer_failure(answer, 404, "there is no such page: see /debug/pprof/");
    else if (is_read(request, answer))
        answer_custom(request, answer, request->path + sizeof profiles - 1);
}
