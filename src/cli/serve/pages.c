/* Pages for people: what is sampled, with links to the available profiles. */
#include "cli/serve/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LAST_MAX_NS 60000000000u

/* {{what}} stands for what is sampled, and {{seconds}} for how much of the time before is shown. */
static const char page[] = {
#include "serve_page.inc"
    0};

/* A name is whatever the process says. */
static void put_text(int fd, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            dprintf(fd, "&lt;");
            break;
        case '&':
            dprintf(fd, "&amp;");
            break;
        default:
            dprintf(fd, "%c", *text);
        }
    }
}

static void put_what(struct session *session, int fd)
{
    char what[SESSION_TEXT_BYTES] = "no process now";
    fgprof_recorder *recorder;
    if (session_take(session, &recorder) == 0) {
        session_describe(session, what);
        session_give_back(session);
    }
    put_text(fd, what);
}

/* A minute, or all that is kept if that is less. */
static double last_s(const struct session *session)
{
    uint64_t keep_ns = session_keep_ns(session);
    return (double)(keep_ns < LAST_MAX_NS ? keep_ns : LAST_MAX_NS) / 1e9;
}

void answer_page(const struct request *request, struct answer *answer)
{
    const char *at = page, *mark;
    /* A program that profiles itself has no profile of the time before. */
    if (request->session->is_for_one) {
        answer_index(request, answer);
        return;
    }
    for (; (mark = strstr(at, "{{")); at = strstr(mark, "}}") + 2) {
        dprintf(answer->body_fd, "%.*s", (int)(mark - at), at);
        if (strncmp(mark, "{{what}}", 8) == 0)
            put_what(request->session, answer->body_fd);
        else
            dprintf(answer->body_fd, "%.11g", last_s(request->session));
    }
    dprintf(answer->body_fd, "%s", at);
}

/* As a part of a URL's path (RFC 3986, 3.3). */
static void put_path(int fd, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-._~/";
    for (; *text; text++)
        dprintf(fd, strchr(plain, *text) ? "%c" : "%%%02X", (unsigned char)*text);
}

static void put_objects(struct session *session, int fd)
{
    static const char no_agent[] = "the agent is not loaded (needed for heap profiles)";
    static const struct {
        const char *name;
        enum fgprof_kind kind;
        const char *counted, *text, *with_seconds;
        const char *missing; /* why, if they are not recorded; NULL: not shown then */
    } rows[] = {
        {"heap", FGPROF_KIND_HEAP, "sampled now", "memory in use, by where it was allocated",
         "only that time", no_agent},
        {"allocs", FGPROF_KIND_ALLOCS, "sampled now", "all memory allocated so far, by where",
         "only that time", no_agent},
        {"threadcreate", FGPROF_KIND_THREADCREATE, "so far", "threads, by where they were made",
         "those that are made in that time", NULL},
    };
    fgprof_recorder *recorder;
    if (session_take(session, &recorder))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t count;
        int err = fgprof_recorder_count_objects(recorder, rows[i].kind, NULL, &count);
        if (err && !rows[i].missing)
            continue;
        dprintf(fd, "<dt><a href=\"/debug/pprof/%s?debug=1\">%s?debug=1</a></dt><dd>", rows[i].name,
                rows[i].name);
        if (err)
            dprintf(fd, "%s: %s</dd>\n", rows[i].text, rows[i].missing);
        else
            dprintf(fd, "%" PRIu64 " %s: %s; with seconds: %s</dd>\n", count, rows[i].counted,
                    rows[i].text, rows[i].with_seconds);
    }
    session_give_back(session);
}

static void put_customs(struct session *session, int fd)
{
    struct customs customs = {0};
    fgprof_recorder *recorder;
    if (session_take(session, &recorder))
        return;
    customs_list(&session->targets, &customs);
    session_give_back(session);
    for (size_t i = 0; i < customs.count; i++) {
        dprintf(fd, "<dt><a href=\"/debug/pprof/");
        put_path(fd, customs.items[i].name);
        dprintf(fd, "?debug=1\">");
        put_text(fd, customs.items[i].name);
        dprintf(fd,
                "?debug=1</a></dt><dd>%" PRIu64
                " now: a profile that the program keeps itself</dd>\n",
                customs.items[i].values);
    }
    customs_free(&customs);
}

void answer_index(const struct request *request, struct answer *answer)
{
    static const struct {
        const char *link, *text;
    } rows[] = {
        {"/debug/fgprof?seconds=10&amp;format=html",
         "where all threads spend their time, running and waiting, for 10 seconds; format: pprof "
         "(default), folded, text, html, speedscope, firefox, report, raw"},
        {"profile?seconds=10", "where they run"},
        {"block?debug=1", "where they wait for each other; with seconds: for that long"},
        {"mutex?debug=1", "where they hold locks that others wait for"},
        {"goroutine?debug=1", "all threads now, by stack; debug=2: each, with what it waits for"},
        {"cmdline", "the command line of the program"},
    };
    int fd = answer->body_fd;
    dprintf(fd, "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n"
                "<title>/debug/pprof/</title>\n<h1>/debug/pprof/</h1>\n<p>Profiles of ");
    put_what(request->session, fd);
    dprintf(fd, "</p>\n<dl>\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        dprintf(fd, "<dt><a href=\"%s%s\">%s</a></dt><dd>%s</dd>\n",
                *rows[i].link == '/' ? "" : "/debug/pprof/", rows[i].link, rows[i].link,
                rows[i].text);
    if (!request->session->is_for_one)
        dprintf(fd,
                "<dt><a href=\"/debug/fgprof?last=%.11gs&amp;format=html\">"
                "/debug/fgprof?last=%.11gs&amp;format=html</a></dt><dd>the same, for the time "
                "before</dd>\n",
                last_s(request->session), last_s(request->session));
    put_objects(request->session, fd);
    put_customs(request->session, fd);
    dprintf(fd, "</dl>\n</html>\n");
}
