/* Profiles: of the next seconds, of the last ones, and of everything since the start. */
#include "cli/serve/request.h"
#include "cli/options/formats.h"
#include "cli/options/values.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECONDS_DEFAULT 30

/* What a request asks for. */
struct wanted {
    const char *name; /* of the file, without its ending */
    enum fgprof_kind kind;
    const struct format *format;
    uint64_t wait_ns; /* the time to come; 0: */
    uint64_t last_ns; /* the time before; 0: all since the start */
};

static bool is_of_objects(const struct wanted *wanted)
{
    return wanted->kind >= FGPROF_KIND_HEAP;
}

static bool find_format(const struct request *request, struct answer *answer, struct wanted *wanted)
{
    const char *name = request_parameter(request, "format");
    wanted->format = format_find(name ? name : "pprof");
    return (wanted->format && wanted->format->type) ||
           answer_failure(
               answer, 400,
               "format must be pprof, folded, text, html, speedscope, firefox, report or raw");
}

/* `seconds` or `last`; without either, `default_s` seconds to come. */
static bool find_time(const struct request *request, struct answer *answer, uint64_t default_s,
                      struct wanted *wanted)
{
    const char *last = request_parameter(request, "last");
    uint64_t seconds;
    bool is_for_one = request->session->is_for_one;
    uint64_t keep_ns = session_keep_ns(request->session);
    if (last && is_for_one)
        return answer_failure(answer, 400, "nothing was sampled before: give seconds");
    if (last && request_parameter(request, "seconds"))
        return answer_failure(answer, 400,
                              "last is of the time before, and seconds of the time to "
                              "come: give one of them");
    if (last &&
        (!duration_parse(last, &wanted->last_ns) || !wanted->last_ns || wanted->last_ns > keep_ns))
        return answer_failure(answer, 400, "last must be a time such as 10s, at most %gs",
                              (double)keep_ns / 1e9);
    if (!request_number(request, answer, "seconds", 1, request->session->options->seconds_max,
                        is_for_one ? SECONDS_DEFAULT : default_s, &seconds))
        return false;
    wanted->wait_ns = last ? 0 : seconds * 1000000000u;
    if (wanted->format && wanted->format->is_of_order && wanted->wait_ns > keep_ns)
        return answer_failure(answer, 400, "the order of time is kept for %gs",
                              (double)keep_ns / 1e9);
    return true;
}

static bool wait_for(const struct request *request, struct answer *answer,
                     const struct wanted *wanted)
{
    return session_wait(request->session, wanted->wait_ns, request->client_fd) !=
               SESSION_CLIENT_GONE ||
           answer_failure(answer, 499, "the client has gone");
}

static bool complain_of_objects(const struct request *request, struct answer *answer,
                                const struct wanted *wanted, int err)
{
    char why[512];
    bool is_none = err == -ENOENT || err == -ENOEXEC || err == -EPERM;
    if (err == -ESRCH)
        return answer_failure(answer, 503, "there is no profile: sampling has not begun yet");
    fgprof_explain_objects(request->session->targets.pids[0], wanted->kind, err, why, sizeof why);
    return answer_failure(answer,
                          is_none         ? 404
                          : err == -EBUSY ? 503
                                          : 500,
                          "no %s profile: %s", wanted->name, why);
}

/* What there is now, or what came and went in the time to come. */
static bool make_objects_with(const struct request *request, struct answer *answer,
                              const struct wanted *wanted, fgprof_recorder *recorder,
                              fgprof_profile **ret_profile)
{
    fgprof_profile *before = NULL, *after = NULL;
    bool ok = true;
    int err = wanted->wait_ns ? fgprof_recorder_objects(recorder, wanted->kind, NULL, &before) : 0;
    if (!err && wanted->wait_ns)
        ok = wait_for(request, answer, wanted);
    if (!err && ok)
        err = fgprof_recorder_objects(recorder, wanted->kind, NULL, &after);
    if (!err && ok && before) {
        err = fgprof_profile_subtract(after, before, ret_profile);
        fgprof_profile_free(after);
    } else if (!err && ok) {
        *ret_profile = after;
    }
    fgprof_profile_free(before);
    return ok && (!err || complain_of_objects(request, answer, wanted, err));
}

static bool make_with(const struct request *request, struct answer *answer,
                      const struct wanted *wanted, fgprof_recorder *recorder,
                      fgprof_profile **ret_profile)
{
    fgprof_moment *moment = NULL;
    int err = 0;
    if (wanted->wait_ns)
        err = fgprof_recorder_moment(recorder, &moment);
    if (!err && wanted->wait_ns && !wait_for(request, answer, wanted)) {
        fgprof_moment_free(moment);
        return false;
    }
    if (!err)
        err = wanted->last_ns ? fgprof_recorder_profile_last(recorder, wanted->last_ns, ret_profile)
                              : fgprof_recorder_profile_since(recorder, moment, ret_profile);
    fgprof_moment_free(moment);
    return !err || answer_failure(answer, err == -ESRCH ? 503 : 500, "there is no profile: %s",
                                  err == -ESRCH ? "sampling has not begun yet" : strerror(-err));
}

static bool make(const struct request *request, struct answer *answer, const struct wanted *wanted,
                 fgprof_profile **ret_profile)
{
    fgprof_recorder *recorder;
    if (!request_take(request, answer, &recorder))
        return false;
    bool ok = is_of_objects(wanted)
                  ? make_objects_with(request, answer, wanted, recorder, ret_profile)
                  : make_with(request, answer, wanted, recorder, ret_profile);
    request_give_back(request);
    return ok;
}

/* The kept time is cut only at certain moments, so there may be more than was asked for, or less at
 * the beginning. */
static int say_how_long(const struct wanted *wanted, fgprof_profile *profile)
{
    struct fgprof_summary summary;
    char text[128];
    fgprof_profile_summary(profile, &summary, sizeof summary);
    double given_s = (double)summary.elapsed_ns / 1e9, asked_s = (double)wanted->last_ns / 1e9;
    snprintf(text, sizeof text, "the last %.2f s: %g s were asked for, and %s", given_s, asked_s,
             given_s < asked_s ? "there is no more yet" : "the rest is kept with them");
    return fgprof_profile_set_reason(profile, text);
}

static void write_profile(const struct request *request, struct answer *answer,
                          const struct wanted *wanted, fgprof_profile *profile)
{
    int err = fgprof_profile_set_command(profile, request->session->options->command_line);
    fgprof_profile_set_threads(profile, wanted->format->tells_threads ? FGPROF_THREADS_BY_ID
                                                                      : FGPROF_THREADS_BY_NAME);
    if (!err && wanted->last_ns)
        err = say_how_long(wanted, profile);
    if (!err && request->session->is_for_one)
        err = fgprof_profile_leave_out(profile, "fgprof_http_handle");
    if (!err && !is_of_objects(wanted))
        err = fgprof_profile_set_kind(profile, wanted->kind);
    if (!err)
        err = fgprof_profile_write(profile, wanted->format->number, answer->body_fd);
    if (err)
        answer_failure(answer, 500, "the profile can't be written: %s", strerror(-err));
}

static void answer_profile(const struct request *request, struct answer *answer,
                           const struct wanted *wanted)
{
    fgprof_profile *profile;
    answer->type = wanted->format->type;
    /* A browser shows what is inline, and saves what is attached. */
    snprintf(answer->disposition, sizeof answer->disposition, "%s; filename=\"%s%s\"",
             text_begins(answer->type, "text/") ? "inline" : "attachment", wanted->name,
             wanted->format->endings[0]);
    if (request->method == METHOD_HEAD || !make(request, answer, wanted, &profile))
        return;
    write_profile(request, answer, wanted, profile);
    fgprof_profile_free(profile);
}

void answer_fgprof(const struct request *request, struct answer *answer)
{
    struct wanted wanted = {.name = "fgprof", .kind = FGPROF_KIND_WALL};
    if (find_format(request, answer, &wanted) &&
        find_time(request, answer, SECONDS_DEFAULT, &wanted))
        answer_profile(request, answer, &wanted);
}

/* Covers everything since the start, unless the request asks for some seconds. */
static void answer_so_far(const struct request *request, struct answer *answer,
                          struct wanted *wanted)
{
    uint64_t debug;
    if (!request_number(request, answer, "debug", 0, 2, 0, &debug) ||
        !find_time(request, answer, 0, wanted))
        return;
    if (debug && request_parameter(request, "seconds"))
        answer_failure(answer, 400, "seconds and debug can't be combined");
    wanted->format = format_of(debug ? FGPROF_TEXT : FGPROF_PPROF);
    if (!answer->is_failure)
        answer_profile(request, answer, wanted);
}

/* As Go's, except for `gc`: there is no garbage to collect. `format` is that of /debug/fgprof. */
static void answer_objects(const struct request *request, struct answer *answer,
                           struct wanted *wanted)
{
    if (request_parameter(request, "last")) {
        answer_failure(answer, 400, "this is of now: for a time give seconds");
        return;
    }
    if (!request_parameter(request, "format")) {
        answer_so_far(request, answer, wanted);
        return;
    }
    if (!find_format(request, answer, wanted) || !find_time(request, answer, 0, wanted))
        return;
    if (wanted->format->is_of_order)
        answer_failure(answer, 400, "%s shows time", wanted->format->name);
    else
        answer_profile(request, answer, wanted);
}

/* By the last part of the path. */
void answer_pprof(const struct request *request, struct answer *answer)
{
    static const struct {
        const char *name;
        enum fgprof_kind kind;
    } rows[] = {
        {"profile", FGPROF_KIND_CPU},   {"block", FGPROF_KIND_BLOCK},
        {"mutex", FGPROF_KIND_MUTEX},   {"heap", FGPROF_KIND_HEAP},
        {"allocs", FGPROF_KIND_ALLOCS}, {"threadcreate", FGPROF_KIND_THREADCREATE},
    };
    struct wanted wanted = {.name = basename(request->path)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(wanted.name, rows[i].name) == 0)
            wanted.kind = rows[i].kind;
    }
    if (is_of_objects(&wanted)) {
        answer_objects(request, answer, &wanted);
    } else if (wanted.kind != FGPROF_KIND_CPU) {
        answer_so_far(request, answer, &wanted);
    } else if (find_time(request, answer, SECONDS_DEFAULT, &wanted)) {
        wanted.format = format_of(FGPROF_PPROF);
        answer_profile(request, answer, &wanted);
    }
}
