/* Pages for people: what is sampled, with links to what can be had of it. */
#include "cli/serve/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

void answer_page(const struct request *request, struct answer *answer)
{
    static const char mark[] = "{{what}}";
    const char *at = strstr(page, mark);
    const char *after = at + sizeof mark - 1;
    dprintf(answer->body_fd, "%.*s", (int)(at - page), page);
    put_what(request->session, answer->body_fd);
    dprintf(answer->body_fd, "%s", after);
}

void answer_index(const struct request *request, struct answer *answer)
{
    static const struct {
        const char *link, *text;
    } rows[] = {
        {"/debug/fgprof?seconds=10&amp;format=html",
         "where all threads spend their time, running and waiting, for 10 seconds; format: pprof "
         "(default), folded, text, html, speedscope, report, raw; last=60s: of the last minute"},
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
    dprintf(fd, "</dl>\n</html>\n");
}
